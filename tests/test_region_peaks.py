"""What a region lets go of while it is recomputed, and when: by the ledger, to the byte.

The rule: while an op of a region runs again, live of the region are its operands, its output, what
a later op of it uses, and what backward steps ask for. Nothing else, and no value from outside that
the region used up. Ops that keep nothing (add a scalar) make the intermediate values here, so that
each one that stayed would be one tensor more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptcli import Tensor
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.policies import save_only_these_names
from tests.account import TENSOR_BYTES, Account, ran

pytestmark = pytest.mark.usefixtures("no_collector")

LAYERS = 4


def network(ops: int) -> Callable[[Account], Tensor]:
    """Layers of element-wise ops: so many that keep nothing, and one that keeps its input."""

    def program(account: Account) -> Tensor:
        h = account.x
        for _ in account.device.layers(LAYERS):
            for _ in range(ops):
                h = h + 1.0
            h = h.sin()
        return h.sum()

    return program


@pytest.mark.parametrize("ops", [1, 2, 3, 20])
def test_the_peak_does_not_grow_with_what_a_region_computes_in_between(ops: int) -> None:
    """The inputs of the layers below the last, and two tensors: an operand and an output."""
    inputs = LAYERS - 2  # the first layer's is the parameter
    assert Account("remat").peak_bytes(network(ops)) == (inputs + 2) * TENSOR_BYTES


@pytest.mark.parametrize("ops", [1, 2, 20])
@pytest.mark.parametrize("strategy", ["remat", "remat:every=2", "sqrt", "segments:1"])
def test_element_wise_layers_never_peak_above_none(strategy: str, ops: int) -> None:
    """`none` holds an input a layer, and makes the first gradient beside them."""
    none = Account("none").peak_bytes(network(ops))
    assert none == (LAYERS + 1) * TENSOR_BYTES
    assert Account(strategy).peak_bytes(network(ops)) <= none


def test_a_value_stays_until_the_last_op_of_the_region_that_uses_it() -> None:
    def twice_used(x: Tensor) -> Tensor:
        a = x + 1.0
        c = a + 1.0 + 1.0
        return (c + a + 1.0).sin()

    assert ran(checkpoint(twice_used)).again == [
        ("add_scalar", 1),  # a
        ("add_scalar", 2),  # a, b
        ("add_scalar", 3),  # a, b, c
        ("add", 3),  # a, c and their sum: b is gone
        ("add_scalar", 2),  # the sum and e: a and c are gone
    ]


def test_what_steps_ask_for_stays_until_the_step_that_takes_it() -> None:
    account = ran(checkpoint(lambda x: ((x + 1.0).sin() + 1.0).sin()))
    assert account.again == [
        ("add_scalar", 1),  # a
        ("sin", 2),  # a, sin a
        ("add_scalar", 3),  # a, sin a, b
    ]
    assert account.steps == [
        ("sum", 0),
        ("sin", 0),  # asks for b
        ("add_scalar", 2),  # a and the gradient: b was handed over
        ("sin", 2),  # asks for a
        ("add_scalar", 1),  # the gradient
    ]


def test_a_value_from_outside_is_let_go_of_with_its_last_use_inside() -> None:
    """The second region's input is held by the checkpointer alone."""
    region: Any = checkpoint(lambda x: (x + 1.0 + 1.0).sin())
    assert ran(lambda x: region(region(x))).again == [
        ("add_scalar", 2),  # the input, a
        ("add_scalar", 2),  # a, b: the input is gone
        ("add_scalar", 2),  # the gradient, a of the first region, whose input is the parameter
        ("add_scalar", 3),  # the gradient, a, b
    ]


def test_a_region_inside_another_hands_nothing_on_that_nobody_asks_for() -> None:
    """The outer region passes through the inner, whose values are made anew when it is its turn."""
    inner: Any = checkpoint(lambda a: (a + 1.0 + 1.0).sin())
    outer: Any = checkpoint(lambda x: (inner(x + 1.0) + 1.0).sin())
    assert ran(outer).again == [
        ("add_scalar", 1),  # a, which the inner region asks for as its input
        ("add_scalar", 2),  # a, b
        ("add_scalar", 3),  # a, b, c
        ("sin", 3),  # a, c, d: b is gone
        ("add_scalar", 3),  # a, d, e: c is gone
        ("add_scalar", 3),  # the inner's turn: the gradient, a, b
        ("add_scalar", 3),  # the gradient, b, c: a is gone
    ]


@pytest.mark.parametrize("used_before", [False, True])
def test_a_named_value_goes_with_the_step_that_takes_it(used_before: bool) -> None:
    """An op that used it before it had its name finds it with the region, which must let go too.

    The region's nodes live to the end of the pass.
    """

    def sine(x: Tensor, name: str) -> Tensor:
        a = x + 1.0
        if not used_before:
            return checkpoint_name(a, name).sin()
        b = a.sin()
        checkpoint_name(a, name)
        return b

    region = checkpoint(lambda x: sine(sine(x, "a"), "b"), save_only_these_names("a", "b"))
    account = ran(region)
    assert account.again == []
    assert account.steps == [
        ("sum", 2),  # a and b
        ("sin", 2),  # asks for b
        ("add_scalar", 2),  # a and the gradient
        ("sin", 2),  # asks for a
        ("add_scalar", 1),  # the gradient
    ]
