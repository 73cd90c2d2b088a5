"""What `backward()` accepts, what it refuses without a trace, and what it leaves behind.

Sources: Burn 0.22.1, `burn-backend-tests/tests/autodiff/{memory_management,broadcast}.rs`,
`burn-autodiff/src/{grads,checkpoint/base}.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, cat, device
from ckptcli.autodiff.backward import collect
from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.builder import build
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.base import Retriever
from ckptcli.errors import (
    CheckpointError,
    ConsumedNodeError,
    ShapeError,
    UntrackedBackwardWarning,
    UntrackedLeafError,
)
from ckptcli.events import NodeCreated, Sink
from ckptcli.graph import Node
from tests.helpers import (
    STRATEGIES,
    backward,
    gradient,
    held_ids,
    leaf,
    nodes_behind,
    of_type,
    unwatched,
    watched,
)

V = [0.3, 0.7]


@pytest.fixture(params=STRATEGIES)
def dev(request: pytest.FixtureRequest) -> Device:
    return unwatched(request.param)


def test_an_untracked_output_warns_and_gives_no_gradient(dev: Device) -> None:
    c = leaf(dev, V, tracked=False)
    y = c.exp().sin()
    with pytest.warns(UntrackedBackwardWarning, match=r"node 2 \(`sin`\) gives no gradients"):
        gradients = backward(y)
    assert gradients.wrt(c) is None
    with pytest.warns(UntrackedBackwardWarning):  # nothing was consumed
        backward(y)


def test_an_untracked_leaf_is_refused(dev: Device) -> None:
    for root in (leaf(dev, V, tracked=False), leaf(dev, V).exp().detach()):
        with pytest.raises(UntrackedLeafError, match=f"node {root.node.id}, a leaf"):
            backward(root)


def test_an_untracked_cat_has_no_step(dev: Device) -> None:
    c = leaf(dev, V, tracked=False)
    with pytest.raises(UntrackedLeafError, match="node 1, a leaf"):
        backward(cat([c, c], 0))


def test_a_leaf_root_gives_ones_every_time(dev: Device) -> None:
    x = leaf(dev, [V])
    for _ in range(2):
        gradients = backward(x)
        assert len(gradients) == 1
        np.testing.assert_array_equal(gradient(gradients, x), np.ones((1, 2)))


def test_gradients_can_be_taken_out(dev: Device) -> None:
    x = leaf(dev, V)
    gradients = backward((x * x).sum())
    taken = gradients.remove(x)
    assert taken is not None
    np.testing.assert_array_equal(taken.numpy(), [0.6, 1.4])
    assert (gradients.wrt(x), len(gradients)) == (None, 0)


def snapshot(root: Tensor) -> list[tuple[Any, ...]]:
    """Every slot of every node behind `root`, by identity."""
    return [
        tuple(id(getattr(node, slot, None)) for slot in node.__slots__)
        for node in nodes_behind(root)
    ]


def assert_refused(root: Tensor, node_id: int) -> None:
    """`backward()` on `root` names `node_id`, and changes nothing."""
    before = snapshot(root)
    text = f"backward\\(\\) from node {root.node.id} reaches node {node_id}, which an earlier"
    with pytest.raises(ConsumedNodeError, match=text):
        backward(root)
    assert snapshot(root) == before


def test_a_consumed_root_is_refused(dev: Device) -> None:
    loss = leaf(dev, V).exp().sum()
    backward(loss)
    assert_refused(loss, 2)


def test_a_consumed_intermediate_is_refused_and_the_rest_stays_usable(dev: Device) -> None:
    x, w = leaf(dev, V), leaf(dev, V)
    y = x.exp()
    backward(y.sum())
    other = w.sin()
    assert_refused((y.sin() * other).sum(), 2)
    np.testing.assert_array_equal(gradient(backward(other.sum()), w), np.cos(V))


def test_a_root_inside_a_consumed_tree_is_refused(dev: Device) -> None:
    middle = leaf(dev, V).exp()
    backward(middle.sin().sum())
    assert_refused(middle, 1)


def test_independent_trees_do_not_disturb_each_other(dev: Device) -> None:
    x, c = leaf(dev, V), leaf(dev, V, tracked=False)
    k = c.exp()
    lhs, rhs = (x.exp() * k).sum(), (x.sin() * k).sum()
    expected = np.exp(V) * np.exp(V), np.cos(V) * np.exp(V)
    np.testing.assert_array_equal(gradient(backward(lhs), x), expected[0])
    np.testing.assert_array_equal(gradient(backward(rhs), x), expected[1])


def test_a_subtree_that_the_user_holds_outlives_its_dropped_root(dev: Device) -> None:
    x = leaf(dev, V)
    y = x.exp().sin()
    dropped = (y * y.detach() + 1.0).cos().sum()
    del dropped
    backward(x.cos().sum())
    np.testing.assert_array_equal(gradient(backward(y.sum()), x), np.exp(V) * np.cos(np.exp(V)))


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(lambda w, x: w * x, id="mul"),
        pytest.param(lambda w, x: w / x, id="div"),
        pytest.param(lambda w, x: w - x, id="sub"),
        pytest.param(lambda w, x: w + x, id="add"),
        pytest.param(lambda w, x: w @ x, id="matmul"),
        pytest.param(lambda w, x: w.mask_where(np.eye(5, dtype=bool)[None], x), id="mask_where"),
    ],
)
def test_gradients_of_broadcast_operands_have_their_shapes(
    dev: Device, op: Callable[[Tensor, Tensor], Tensor]
) -> None:
    w, x = leaf(dev, np.ones((16, 5, 5))), leaf(dev, np.full((4, 5, 5), 2.0))
    gradients = backward(op(w[0:1], x))
    assert gradient(gradients, w)[0].any()
    assert not gradient(gradients, w)[1:].any()
    assert gradient(gradients, x).any()


@pytest.mark.parametrize("op", ["mask_where", "mask_fill"])
def test_a_mask_larger_than_the_operands_is_refused(dev: Device, op: str) -> None:
    x, source = leaf(dev, [V]), leaf(dev, [V])
    mask = np.eye(2, dtype=bool)
    with pytest.raises(ShapeError, match=rf"`{op}` cannot take shape .* \[2, 2\] is larger"):
        x.mask_fill(mask, 0.0) if op == "mask_fill" else x.mask_where(mask, source)


def test_a_pass_releases_the_graph(dev: Device) -> None:
    root = (leaf(dev, V).exp() * leaf(dev, V)).sum()
    assert len(nodes_behind(root)) == 5
    backward(root)
    assert nodes_behind(root) == [root.node]


def test_balanced_holds_the_input_of_an_element_wise_chain() -> None:
    held = {}
    for strategy in STRATEGIES:
        x = leaf(unwatched(strategy), V)
        held[strategy] = held_ids((x.exp().sin() * x).cos())
    assert held == {"none": {0, 1, 2, 3}, "balanced": {0}}


def test_balanced_can_hold_more_than_none() -> None:
    held = {}
    for strategy in STRATEGIES:
        dev = unwatched(strategy)
        x, w = leaf(dev, [V]), leaf(dev, [[1.0], [2.0]])
        held[strategy] = held_ids(((x @ w) + (w @ x)).sum())
    assert held == {"none": {0, 1}, "balanced": {0, 1, 2, 3}}


@pytest.mark.slow
def test_a_long_chain_needs_no_stack(dev: Device) -> None:
    x = y = leaf(dev, [1.0])
    for _ in range(100_000):
        y = (y * 1.0).sin()
    assert 0.0 < gradient(backward(y), x).item() < 1.0
    never_used = x
    for _ in range(200_000):
        never_used = never_used + 1.0
    del never_used


@pytest.mark.sampled(2)
def test_a_chain_of_squares_is_linear(dev: Device) -> None:
    x = y = leaf(dev, [1.0])
    for _ in range(10_000):
        y = (y * y + 1.0) * 0.5
    assert gradient(backward(y), x).item() == 1.0


def test_what_the_engine_tells_of_a_pass() -> None:
    """x=0, exp=1, transpose=2 (a view of node 1), matmul=3 of both."""
    dev, recorder = watched("balanced")
    y = leaf(dev, [V]).exp()
    root = y @ y.transpose()
    shape, view, product = of_type(recorder.events, NodeCreated)[1:]
    assert (shape.op, shape.parents, shape.shape, shape.recompute) == ("exp", (0,), (1, 2), True)
    assert (view.op, view.value_bytes, view.storage) == ("swap_dims", 16, shape.storage)
    assert (product.op, product.parents, product.recompute) == ("matmul", (1, 2), False)
    assert product.storage != view.storage
    forward_events = len(recorder.events)
    backward(root)
    told = [
        (type(event).__name__, getattr(event, "node_id", getattr(event, "root_id", None)))
        for event in recorder.events[forward_events:]
    ]
    assert told == [
        ("BackwardStarted", 3),
        ("StepStarted", 3),
        ("Retrieved", 1),
        ("Visited", 0),
        ("Visited", 1),
        ("Recomputed", 1),
        ("Retrieved", 2),
        ("Visited", 1),
        ("Visited", 2),
        ("Recomputed", 2),
        ("GradientRegistered", 1),
        ("GradientRegistered", 2),
        ("StepStarted", 2),
        ("GradientRegistered", 1),
        ("StepStarted", 1),
        ("Retrieved", 0),
        ("Visited", 0),
        ("GradientRegistered", 0),
    ]


def square_of_exp(dev: Device) -> Tensor:
    """x=0, exp=1, mul=2."""
    y = leaf(dev, V).exp()
    return y * y


class Miscounting(BalancedCheckpointing):
    """Expects one use of `node_id` more than there is."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        states = build(steps, namespace, sink)
        states.required[self.node_id] += 1
        return states


@pytest.mark.parametrize("node_id", [0, 1])
def test_a_use_that_never_comes_is_noticed(node_id: int) -> None:
    dev = device().autodiff().gradient_checkpointing(Miscounting(node_id)).watched_by(None)
    with pytest.raises(CheckpointError, match=rf"not drained .*: nodes \[{node_id}\]"):
        backward(square_of_exp(dev))


def test_a_use_too_many_is_noticed() -> None:
    root = square_of_exp(unwatched("balanced"))
    states = build(collect(root.node), root.device.namespace, None)
    exp = root.node.parents[0]
    assert states.required == {1: 2, 0: 1}
    first, second = states.retrieve(root.node)
    assert first is second
    states.check_drained()
    with pytest.raises(CheckpointError):
        states.fetch(exp)


def test_a_value_that_nobody_saved_is_named() -> None:
    root = square_of_exp(unwatched("balanced"))
    exp = root.node.parents[0]
    exp.saved = exp.saved_values = exp.backup_values = ()
    with pytest.raises(CheckpointError) as raised:
        backward(root)
    assert str(raised.value) == "Node NodeId { value: 0 } is needed but never checkpointed"
