"""The optimizers that `--optimizer` has a name for: what each keeps, and what makes it in PyTorch.

Invariant: a name is a line here, and nothing anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One of them.

    Attributes:
        states: how many numbers it keeps for each of a parameter.
        torch_class: what it is called in `torch.optim`.
        arguments: by keyword, what it is made with there.
    """

    states: int
    torch_class: str
    arguments: Mapping[str, float] = field(default_factory=dict)


OPTIMIZERS = {
    "sgd": Optimizer(0, "SGD", {"lr": 1e-3}),
    "momentum": Optimizer(1, "SGD", {"lr": 1e-3, "momentum": 0.9}),
    "adam": Optimizer(2, "Adam"),
}


def states_of(name: str) -> int:
    """How many numbers it keeps for each of a parameter; 0 of "", no optimizer."""
    return OPTIMIZERS[name].states if name else 0
