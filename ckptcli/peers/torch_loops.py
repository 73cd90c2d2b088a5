"""Which blocks a module's own forward calls in a plain loop: each with what the one before gave.

Such blocks fit under one checkpoint together, though no Sequential calls them: `chained` calls all
of a group where the loop calls its first, and the others hand on what they are given.

Invariant: nothing of it is left on the module afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ckptcli.peers.torch_blocks import Blocks


class _Loop:
    """The calls of one run's blocks so far; `place` is None once they are no plain loop."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        self.modules = modules
        self.place: int | None = 0
        self._output: Any = None
        self._others: tuple[Any, ...] = ()

    def enter(self, module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        place = self.place
        if place is None:
            return
        others = (*arguments[1:], *keywords.values(), *keywords)
        if place == 0:
            self._others = others
        follows = place < len(self.modules) and module is self.modules[place] and bool(arguments)
        if follows and place > 0:
            is_handed_on = arguments[0] is handed_on(self._output)
            follows = is_handed_on and _are_same(self._others, others)
        self.place = place + 1 if follows else None

    def leave(self, module: Any, arguments: Any, output: Any) -> None:
        self._output = output
        if handed_on(output) is None:
            self.place = None

    @property
    def is_plain(self) -> bool:
        return self.place == len(self.modules)


@contextmanager
def following_loops(blocks: Blocks) -> Iterator[set[int]]:
    """Inside, one forward pass is followed; afterwards the set has, by `id`, the first block of
    each run that was called in a plain loop.
    """
    loops, plain = [], set[int]()
    handles = []
    for run in blocks.runs:
        modules = [module for _, module in run.blocks]
        is_script = any(isinstance(module, torch.jit.ScriptModule) for module in modules)
        if len(modules) < 2 or len({id(m) for m in modules}) < len(modules) or is_script:
            continue
        loop = _Loop(modules)
        loops.append(loop)
        for module in modules:
            handles.append(module.register_forward_pre_hook(loop.enter, with_kwargs=True))
            handles.append(module.register_forward_hook(loop.leave))
    try:
        yield plain
        plain.update(id(loop.modules[0]) for loop in loops if loop.is_plain)
    finally:
        for handle in handles:
            handle.remove()


def handed_on(output: Any) -> torch.Tensor | None:
    """What a loop hands to its next block: the tensor that a block gives, alone or in a tuple
    without others; None where it gives something else.
    """
    if isinstance(output, tuple) and output and all(part is None for part in output[1:]):
        output = output[0]
    return output if isinstance(output, torch.Tensor) else None


def chained(calls: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Calls the blocks of a group one after the other, as the loop would."""

    def chain(first: Any, *others: Any, **keywords: Any) -> Any:
        output = calls[0](first, *others, **keywords)
        for call in calls[1:]:
            output = call(handed_on(output), *others, **keywords)
        return output

    return chain


def passing_on(is_tuple: Sequence[bool]) -> Callable[..., Any]:
    """A block of a group but its first: what it would compute is computed already. Its output has
    the form of the group's, which `is_tuple` tells when it is called.
    """

    def pass_on(first: Any, *others: Any, **keywords: Any) -> Any:
        del others, keywords
        return (first,) if is_tuple[0] else first

    return pass_on


def _are_same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(ones) == len(others) and all(map(_is_same, ones, others))


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    plain = (bool, int, float, str, type(None))
    return isinstance(one, plain) and isinstance(other, plain) and one == other
