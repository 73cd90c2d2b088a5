"""How many arrays a backward pass makes for a value that several steps take gradients to.

A gradient that steps hand on shares memory with others, so the second to arrive is added into a new
array. That one is the sum's own: every later gradient is added into it, and the step of the value
writes over it. A pass of more uses then makes no more arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ckptcli import Tensor, device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from tests.helpers import backward, gradient

SHAPE = (8, 8)


def made(program: Callable[[Tensor], Tensor], strategy: str = "none") -> tuple[int, float]:
    """The whole arrays that the backward pass makes, and each element of the gradient."""
    ledger = Ledger()
    base = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    dev = base.watched_by(None, TrackedBackend(NumpyBackend(), ledger))
    x = dev.tensor(np.ones(SHAPE)).require_grad()
    root = program(x).sum()
    before = len(ledger.history)
    (value,) = set(gradient(backward(root), x).ravel().tolist())
    return sum(storage.shape == SHAPE for storage in ledger.history[before:]), value


def sum_of(uses: int) -> Callable[[Tensor], Tensor]:
    """A value added to itself: every gradient is the one of the sum, handed on."""

    def program(x: Tensor) -> Tensor:
        y = -x
        total = y
        for _ in range(uses - 1):
            total = total + y
        return total

    return program


@pytest.mark.parametrize("uses", [1, 2, 3, 4, 50])
@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_gradients_that_are_handed_on_need_one_array(strategy: str, uses: int) -> None:
    """Of one use, it is what the step of the value makes; of more, the sum it writes over."""
    assert made(sum_of(uses), strategy) == (1, -uses)


@pytest.mark.parametrize(("uses", "arrays"), [(2, 1), (3, 2), (4, 2), (50, 2)])
def test_a_gradient_of_its_own_that_comes_second_takes_the_sum(uses: int, arrays: int) -> None:
    """That of 2 y comes last. Of two uses, the other one is shared and is added into it.

    Of more, the sum has an array before it comes.
    """

    def program(x: Tensor) -> Tensor:
        y = -x
        total = y * 2.0
        for _ in range(uses - 1):
            total = total + y
        return total

    assert made(program) == (arrays, -(uses + 1))


def test_a_gradient_that_goes_to_one_operand_stays_the_steps_own() -> None:
    """The step of the double makes an array, the sum hands it to -x alone, which writes over it."""

    def program(x: Tensor) -> Tensor:
        constant = x.device.tensor(np.ones(SHAPE))
        return (-x + constant) * 2.0

    assert made(program) == (1, -2)


def test_what_is_written_over_is_nobodys_else() -> None:
    """Both operands get the same gradient; the step of one writes over it, the other must not see.

    d/dx of -x + exp(x) at 1, either way round.
    """
    for program in (lambda x: -x + x.exp(), lambda x: x.exp() + -x):
        assert made(program)[1] == np.e - 1.0
