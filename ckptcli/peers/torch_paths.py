"""Which module of a PyTorch module runs: the paths of those that are entered, outermost first.

Invariant: nothing of it is left on the module afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ckptcli.measure.memory import WHOLE_MODULE

WHOLE = WHOLE_MODULE

Entered = Callable[[str, torch.nn.Module], None]


class Paths:
    """`running` has the paths of the modules that run; `entered` is told of each, before its hooks
    and its forward.
    """

    def __init__(self, entered: Entered = lambda path, module: None) -> None:
        self.running: list[str] = []
        self._entered = entered

    @property
    def now(self) -> str:
        """The path of the innermost; `WHOLE` where none runs."""
        return self.running[-1] if self.running else WHOLE

    @contextmanager
    def following(self, module: torch.nn.Module) -> Iterator[None]:
        """Inside, the modules in `module` are followed."""
        handles = [
            handle
            for path, part in module.named_modules()
            if not isinstance(part, torch.jit.ScriptModule)  # these take no hooks
            for handle in self._follow(path or WHOLE, part)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def as_at(self, running: list[str]) -> Iterator[None]:
        """Inside, these modules run: what is computed again begins where it was computed first."""
        before, self.running = self.running, list(running)
        try:
            yield
        finally:
            self.running = before

    def _follow(self, path: str, part: torch.nn.Module) -> list[Any]:
        def enter(part: Any, arguments: Any) -> None:
            self._entered(path, part)
            self.running.append(path)

        def leave(part: Any, arguments: Any, output: Any) -> None:
            self.running.pop()

        return [
            part.register_forward_pre_hook(enter, prepend=True),
            part.register_forward_hook(leave, always_call=True),
        ]
