"""What a backward step lets go of when it is done, beside what it retrieved."""

from __future__ import annotations

import pytest

from ckptcli import Tensor
from tests.account import ran

pytestmark = pytest.mark.usefixtures("no_collector")


def test_what_an_op_keeps_beside_the_checkpointer_goes_with_its_step() -> None:
    """A running maximum keeps its input by value: x, a and b, of which x is the parameter."""

    def program(x: Tensor) -> Tensor:
        for _ in range(3):
            x = x.cummax(0)
        return x

    assert ran(program).steps == [
        ("sum", 2),  # a and b
        ("cummax", 2),  # a and b
        ("cummax", 2),  # a and the gradient
        ("cummax", 1),  # the gradient
    ]


def test_what_a_step_took_is_gone_when_the_next_one_starts() -> None:
    """Each sine keeps its input: x, a and b. A gradient takes the place of the one before it."""
    assert ran(lambda x: x.sin().sin().sin()).steps == [
        ("sum", 2),  # a and b
        ("sin", 2),  # a and b
        ("sin", 2),  # a and the gradient
        ("sin", 1),  # the gradient
    ]
