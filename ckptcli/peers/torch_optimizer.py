"""The optimizer of a step of training, with what it moves: parameters and a state of its own.

Invariant: `put_back` gives the parameters every bit of before; the optimizer's state moves on,
which no gradient depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ckptcli.errors import UsageError
from ckptcli.options.optimizers import OPTIMIZERS
from ckptcli.units import count

NAMED: dict[str, Callable[..., torch.optim.Optimizer]] = {
    name: partial(getattr(torch.optim, known.torch_class), **known.arguments)
    for name, known in OPTIMIZERS.items()
}
"""By the name that `--optimizer` has for it, what makes one of parameters."""


def made_optimizer(given: Any, parameters: Sequence[torch.nn.Parameter]) -> Any:
    """An instance as it is, or what is made of the parameters that require a gradient."""
    if not callable(given) or (hasattr(given, "step") and not isinstance(given, type)):
        return given  # also what is no optimizer, which an error names then
    return given([parameter for parameter in parameters if parameter.requires_grad])


class StepOptimizer:
    """An optimizer over some parameters.

    Attributes:
        optimizer: the user's.
    """

    def __init__(self, optimizer: Any, parameters: Sequence[torch.nn.Parameter], text: str) -> None:
        """`parameters` are those of the step that an error calls `text`.

        Raises:
            UsageError: it takes no steps, or is over what is none of the parameters.
        """
        if not callable(getattr(optimizer, "step", None)):
            raise UsageError(
                f"the optimizer of `{text}` is of type {type(optimizer).__name__}, which has no "
                "step()",
                "give an optimizer of torch.optim, or what makes one of parameters",
            )
        known = set(map(id, parameters))
        others = [moved for moved in _moved(optimizer) if id(moved) not in known]
        if others:
            raise UsageError(
                f"the optimizer of `{text}` moves {count(len(others), 'tensor')} that the module "
                "does not have as a parameter",
                "make it over the parameters of the module that the step names, or of its loss, if "
                "that is a module",
            )
        self.optimizer = optimizer
        self._parameters = [p for p in parameters if p.requires_grad]
        self._before: list[tuple[torch.Tensor, torch.Tensor]] | None = None

    def step(self, gradients: Sequence[torch.Tensor | None]) -> None:
        """The optimizer's step by these gradients of the parameters that require one, in order; the
        first keeps what it moves. No gradient is left in `.grad`.
        """
        if self._before is None:
            self._before = [(moved, moved.detach().clone()) for moved in _moved(self.optimizer)]
        for parameter, gradient in zip(self._parameters, gradients):
            parameter.grad = gradient
        self.optimizer.step()
        for parameter in self._parameters:
            parameter.grad = None

    def put_back(self) -> None:
        """Give the parameters the values from before the first step."""
        with torch.no_grad():
            for moved, before in self._before or ():
                moved.copy_(before)

    def state(self) -> list[torch.Tensor]:
        """What it keeps from step to step, which the first one makes."""
        return state_of(self.optimizer)


def state_of(optimizer: Any) -> list[torch.Tensor]:
    """The tensors that an optimizer keeps from step to step."""
    found = tree_leaves(list(getattr(optimizer, "state", {}).values()))
    return [leaf for leaf in found if isinstance(leaf, torch.Tensor)]


def _moved(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]
