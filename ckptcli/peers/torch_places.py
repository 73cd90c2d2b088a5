"""Which part of a PyTorch module runs, and what it was given: what an error names.

Invariant: nothing of it is left on the module afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

SHOWN = 4
"""Arguments beyond these are not named."""


class Places:
    """The modules that run, outer-most first, and those that were called at all, by `id`."""

    def __init__(self) -> None:
        self.called: set[int] = set()
        self._running: list[tuple[str, str]] = []

    def text(self) -> str:
        """` in `0` (Linear), given float32 [2, 4]`; "" where no module runs."""
        if not self._running:
            return ""
        label, given = self._running[-1]
        return f" in {label}{given}"

    @contextmanager
    def following(self, module: torch.nn.Module) -> Iterator[None]:
        """Inside, the forward passes of the module are followed."""
        handles = [
            handle
            for path, part in module.named_modules()
            if not isinstance(part, torch.jit.ScriptModule)  # these take no hooks
            for handle in self._follow(part, _label(path, part))
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _follow(self, part: torch.nn.Module, label: str) -> list[Any]:
        def enter(part: Any, arguments: Any, keywords: Any) -> None:
            self.called.add(id(part))
            self._running.append((label, _given([*arguments, *keywords.values()])))

        def leave(part: Any, arguments: Any, output: Any) -> None:
            # What a part raised and its caller caught has left parts above it.
            while self._running.pop()[0] != label:
                pass

        return [
            part.register_forward_pre_hook(enter, with_kwargs=True),
            part.register_forward_hook(leave),
        ]


def _label(path: str, part: torch.nn.Module) -> str:
    kind = type(part).__name__
    return f"`{path}` ({kind})" if path else kind


def _given(arguments: Sequence[object]) -> str:
    return f", given {_kinds(arguments)}" if arguments else ""


def _kinds(values: Sequence[object]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return f"{', '.join(map(_kind, values[:SHOWN]))}{more}"


def _kind(value: object) -> str:
    """A container with what is in it: where a tensor is wanted, a list of one is the error."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    inside = tree_leaves(value) if isinstance(value, list | tuple | Mapping) else []
    return f"{type(value).__name__} of {_kinds(inside)}" if inside else type(value).__name__
