"""Policies: which values of a region may be saved, by op, by name, by the user's own function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.policies import (
    Policy,
    ValueInfo,
    described,
    dots_saveable,
    dots_with_no_batch_dims_saveable,
    everything_saveable,
    nothing_saveable,
    parse_policy,
    save_any_names_but_these,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.policies.dots import DOTS
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.events import NodeCreated
from tests.helpers import backward, gradient, held_ids, leaf, of_type, recomputed, watched
from tests.regions import X, own_output, recomputed_ops, run

W = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [0.2, 0.1, 0.9]]


def value(op: str = "exp", name: str | None = None, batch_dims: int = 0) -> ValueInfo:
    return ValueInfo(op, name, batch_dims, None)


VALUES = [
    value("exp"),
    value("exp", "a"),
    value("exp", "b"),
    value("matmul"),
    value("matmul", "a"),
    value("matmul", batch_dims=1),
    value("linear"),
    value("conv2d"),
    value("conv_transpose3d"),
]

ANSWERS: list[tuple[str, Policy, list[int]]] = [
    ("nothing_saveable", nothing_saveable, []),
    ("everything_saveable", everything_saveable, [*range(9)]),
    ("dots_saveable", dots_saveable, [3, 4, 5, 6, 7, 8]),
    ("dots_with_no_batch_dims_saveable", dots_with_no_batch_dims_saveable, [3, 4, 6]),
    ("save_only_these_names(a)", save_only_these_names("a"), [1, 4]),
    ("save_only_these_names(a, b)", save_only_these_names("a", "b"), [1, 2, 4]),
    ("save_any_names_but_these(a)", save_any_names_but_these("a"), [2]),
    ("save_any_names_but_these()", save_any_names_but_these(), [1, 2, 4]),
    ("save_any_names_but_these", save_any_names_but_these(), [1, 2, 4]),
    (
        "save_from_both_policies(dots_with_no_batch_dims_saveable, save_only_these_names(b,c))",
        save_from_both_policies(dots_with_no_batch_dims_saveable, save_only_these_names("b", "c")),
        [2, 3, 4, 6],
    ),
    (
        " save_from_both_policies( nothing_saveable , save_from_both_policies("
        "save_only_these_names(a),save_any_names_but_these(a)) ) ",
        save_any_names_but_these(),
        [1, 2, 4],
    ),
]


@pytest.mark.parametrize(("text", "policy", "saved"), ANSWERS)
def test_what_a_policy_saves(text: str, policy: Policy, saved: list[int]) -> None:
    for each in (policy, parse_policy(text)):
        assert [i for i, info in enumerate(VALUES) if each(info)] == saved


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dots_savable", "did you mean|dots_savable"),
        ("save_anything_except_these_names(a)", "save_anything_except_these_names"),
        ("", "policy"),
        ("save_only_these_names", "needs names"),
        ("save_only_these_names()", "needs names"),
        ("save_only_these_names(a", "brackets"),
        ("save_only_these_names(a))", "brackets"),
        ("save_only_these_names(a)b", "brackets"),
        ("save_only_these_names(a)(b)", "brackets"),
        ("dots_saveable(a)", "takes no arguments"),
        ("save_from_both_policies(dots_saveable)", "takes two policies, got 1"),
        ("save_from_both_policies(dots_saveable,dots_saveable,x)", "takes two policies, got 3"),
        ("save_from_both_policies(dots_saveable,x)", "x"),
    ],
)
def test_what_is_not_a_policy(text: str, message: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=message):
        parse_policy(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("remat:", None),
        ("remat:every=0", UsageError),
        ("remat:every=two", UsageError),
        ("remat:every", UsageError),
        ("remat:last=first", UsageError),
        ("remat:policy=", UsageError),
        ("remat:size=2", UnknownNameError),
        ("remat:policy=save_from_both_policies(dots_saveable,save_only_these_names(a,b))", None),
        ("segments", UsageError),
        ("segments:0", UsageError),
        ("segments:x", UsageError),
        ("sqrt:2", UsageError),
    ],
)  # fmt: skip
def test_how_strategies_are_written(text: str, error: type[Exception] | None) -> None:
    if error is None:
        assert parse_strategy(text).name.startswith(text.rstrip(":"))
    else:
        with pytest.raises(error):
            parse_strategy(text)


def test_commas_inside_brackets_do_not_split() -> None:
    text = "remat:policy=save_only_these_names(p,h),every=3"
    regions = parse_strategy(text).layer_regions(6)
    assert regions is not None
    assert [region.size for region in regions] == [3, 3]
    policy = regions[0].policy
    assert policy is not None
    assert described(policy).names() == {"p", "h"}


def test_names_are_added_to_what_the_policy_saves() -> None:
    regions = parse_strategy("remat:policy=dots_saveable,names=p+h").layer_regions(1)
    assert regions is not None
    policy = regions[0].policy
    assert policy is not None
    assert [policy(v) for v in (value("matmul"), value(name="p"), value(name="h"), value())] == [
        True, True, True, False,
    ]  # fmt: skip


def test_names_in_a_function_of_the_users_own_are_not_known() -> None:
    assert described(lambda info: info.name == "a").names() == set()
    assert described(
        save_from_both_policies(lambda _: True, save_only_these_names("a"))
    ).names() == {"a"}


def test_every_product_and_convolution_is_a_dot() -> None:
    assert {"matmul", "linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d"} <= DOTS


# A name means the value itself.


def named_region(op: Any, policy: Policy) -> tuple[list[str], Any]:
    def program(x: Tensor) -> Tensor:
        block = checkpoint(lambda h: checkpoint_name(op(h), "y") * 1.5, policy=policy)
        return block(x).sum()

    (found,), again = run(program, X)
    return again, found


@pytest.mark.parametrize("op", [own_output, Tensor.exp, Tensor.tanh, Tensor.sigmoid, Tensor.gelu])
def test_the_producers_own_backward_finds_the_named_value(op: Any) -> None:
    """In JAX it does not: the name marks a copy, and the op runs again although `y` is saved."""
    again, _ = named_region(op, save_only_these_names("y"))
    assert again == []


def test_without_the_name_the_producer_runs_again() -> None:
    assert named_region(own_output, nothing_saveable)[0] == ["own"]


def test_a_consumer_after_the_name_and_the_producer_share_the_saved_value() -> None:
    """JAX saves `y` for the square and runs the op again for its own derivative."""

    def program(x: Tensor) -> Tensor:
        block = checkpoint(
            lambda h: checkpoint_name(own_output(h + 1.0), "y") ** 2,
            policy=save_only_these_names("y"),
        )
        return block(x).sum()

    (found,), again = run(program, X)
    assert again == []
    y = np.tanh(np.asarray(X) + 1.0)
    np.testing.assert_allclose(found, 2 * y * (1 - y * y), rtol=1e-13)


def test_a_consumer_before_the_name_finds_it_too() -> None:
    dev, recorder = watched("none")
    x = leaf(dev, X)
    with x.region("r", save_only_these_names("y")):
        y = x.exp()
        before = y.sin()
        checkpoint_name(y, "y")
        after = y.cos()
    backward((before + after).sum())
    assert recomputed(recorder.events) == []


def test_names_are_not_unique() -> None:
    """Every value with the name follows the same rule."""

    def program(x: Tensor) -> Tensor:
        def block(h: Tensor) -> Tensor:
            for _ in range(3):
                h = checkpoint_name(h.exp(), "e").sin()
            return h

        return checkpoint(block, policy=save_only_these_names("e"))(x).sum()

    assert run(program, X)[1] == ["sin", "sin"]


def test_a_value_may_have_two_names() -> None:
    def again(*names: str) -> list[str]:
        def program(x: Tensor) -> Tensor:
            block = checkpoint(
                lambda h: checkpoint_name(checkpoint_name(h.exp(), "first"), "second").sin(),
                policy=save_only_these_names(*names),
            )
            return block(x).sum()

        return run(program, X)[1]

    assert again("first") == again("second") == again("first", "second") == []
    assert again("third") == ["exp"]


def test_a_name_makes_no_node_and_copies_nothing() -> None:
    dev, recorder = watched("none")
    x = leaf(dev, X)
    with x.region("r"):
        y = x.exp()
        assert checkpoint_name(y, "y") is y
    assert len(of_type(recorder.events, NodeCreated)) == 2
    assert checkpoint_name(x, "outside of all regions") is x


def test_a_name_on_an_input_of_the_region_changes_nothing() -> None:
    dev, recorder = watched("none")
    x = leaf(dev, X)
    h = x.exp()
    with x.region("r", save_only_these_names("h")):
        y = checkpoint_name(h, "h").sin()
    backward(y.sum())
    assert recomputed(recorder.events) == []


def test_a_saved_value_that_nobody_needs_is_not_held() -> None:
    dev, _ = watched("none")
    x = leaf(dev, X)
    with x.region("r", everything_saveable):
        y = (x + 1.0) * 2.0
    assert held_ids(y.sum()) == set()


def test_a_policy_sees_no_value() -> None:
    seen: list[tuple[str, str | None, object]] = []

    def policy(info: ValueInfo) -> bool:
        assert isinstance(info, ValueInfo)
        seen.append((info.op, info.name, info.params))
        return False

    def program(x: Tensor, w: Tensor) -> Tensor:
        block = checkpoint(lambda h: checkpoint_name((h @ w) * 2.0, "y"), policy=policy)
        return block(x).sum()

    run(program, X, W)
    assert seen == [
        ("matmul", None, None),
        ("mul_scalar", None, 2.0),
        ("mul_scalar", "y", 2.0),
    ]


# Products over leading dims, JAX's batch dims.


@pytest.mark.parametrize(
    ("lhs", "rhs", "batch_dims"),
    [
        ((3, 2), (2, 4), 0),
        ((5, 3, 2), (5, 2, 4), 1),
        ((5, 3, 2), (1, 2, 4), 0),
        ((1, 3, 2), (5, 2, 4), 0),
        ((1, 3, 2), (1, 2, 4), 0),
        ((6, 5, 3, 2), (6, 5, 2, 4), 2),
        ((6, 5, 3, 2), (6, 1, 2, 4), 1),
        ((5, 1, 2), (1, 2, 4), 0),
        ((2, 3, 4, 5), (3, 5, 6), 1),
        ((3, 4, 5), (3, 1, 5, 6), 0),
        ((2, 3, 4, 5), (2, 1, 5, 6), 1),
        ((7, 2, 3, 4, 5), (3, 5, 6), 1),
    ],
)
def test_batch_dims_are_those_that_both_operands_have(
    lhs: tuple[int, ...], rhs: tuple[int, ...], batch_dims: int
) -> None:
    """JAX: a dot with batch dims is not saved, however many dims the activations have."""
    dev, recorder = watched("none")
    x, w = leaf(dev, np.ones(lhs)), leaf(dev, np.ones(rhs))
    seen: list[int] = []

    def policy(info: ValueInfo) -> bool:
        if info.op == "matmul":
            seen.append(info.batch_dims)
        return dots_with_no_batch_dims_saveable(info)

    with x.region("dots", policy):
        y = (x @ w).sin()
    gradients = backward(y.sum())
    assert gradient(gradients, x).shape == lhs
    assert seen == [batch_dims]
    assert ("matmul" in recomputed_ops(recorder.events)) == (batch_dims > 0)
