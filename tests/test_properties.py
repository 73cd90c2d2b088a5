"""Random programs: both strategies against each other, and against reverse mode written plainly.

A program is a list of (op, operand, operand). The oracle runs it first, leaves out an op whose
operands do not fit or whose values grow too large, and so settles what the engine runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray

from ckptcli import Device, Tensor, cat
from ckptcli.events import BackwardStarted, Event, NodeCreated, Retrieved, Visited
from tests.helpers import (
    STRATEGIES,
    backward,
    gradient,
    leaf,
    of_type,
    recomputed,
    required,
    same_bits,
    unwatched,
    watched,
)

Array = NDArray[Any]


class Rule(NamedTuple):
    """An op three times: on tensors, on arrays, and its gradients from g, the value y and operands.

    The oracle sums each gradient to its operand's shape; None flows nowhere.
    """

    engine: Callable[..., Tensor]
    value: Callable[..., Array]
    gradients: Callable[..., tuple[Array | None, ...]]
    arity: int = 1


def sigma(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def select(mask: Array, yes: Array, no: Array) -> Array:
    return np.asarray(np.where(mask, yes, no))


def first_row(g: Array, x: Array) -> Array:
    return np.concatenate([g, np.zeros_like(x[1:])])


RULES: dict[str, Rule] = {
    "add": Rule(lambda a, b: a + b, lambda a, b: a + b, lambda g, y, a, b: (g, g), 2),
    "sub": Rule(lambda a, b: a - b, lambda a, b: a - b, lambda g, y, a, b: (g, -g), 2),
    "mul": Rule(lambda a, b: a * b, lambda a, b: a * b, lambda g, y, a, b: (g * b, g * a), 2),
    "div": Rule(
        lambda a, b: a / (b * b + 1.0),
        lambda a, b: a / (b * b + 1.0),
        lambda g, y, a, b: (g / (b * b + 1.0), -g * y * 2 * b / (b * b + 1.0)),
        2,
    ),
    "matmul": Rule(
        lambda a, b: a @ b, lambda a, b: a @ b, lambda g, y, a, b: (g @ b.T, a.T @ g), 2
    ),
    "mask_where": Rule(
        lambda a, b: a.mask_where((a + b) > 0.0, b),
        lambda a, b: select(a + b > 0, b, a),
        lambda g, y, a, b: (select(a + b > 0, 0 * g, g), select(a + b > 0, g, 0 * g)),
        2,
    ),
    "cat": Rule(
        lambda a, b: cat([a, b], 0),
        lambda a, b: np.concatenate([a, b]),
        lambda g, y, a, b: (g[: len(a)], g[len(a) :]),
        2,
    ),
    "detach": Rule(lambda x: x.detach() * 1.0, lambda x: x * 1.0, lambda g, y, x: (None,)),
    "sin": Rule(lambda x: x.sin(), np.sin, lambda g, y, x: (g * np.cos(x),)),
    "cos": Rule(lambda x: x.cos(), np.cos, lambda g, y, x: (-g * np.sin(x),)),
    "tanh": Rule(lambda x: x.tanh(), np.tanh, lambda g, y, x: (g * (1 - y * y),)),
    "exp": Rule(lambda x: x.exp(), np.exp, lambda g, y, x: (g * y,)),
    "sigmoid": Rule(lambda x: x.sigmoid(), sigma, lambda g, y, x: (g * y * (1 - y),)),
    "relu": Rule(lambda x: x.relu(), lambda x: np.maximum(x, 0), lambda g, y, x: (g * (x > 0),)),
    "neg": Rule(lambda x: -x, lambda x: -x, lambda g, y, x: (-g,)),
    "scale": Rule(lambda x: 1.0 - x * 0.5, lambda x: 1.0 - x * 0.5, lambda g, y, x: (-0.5 * g,)),
    "square": Rule(lambda x: x**2, lambda x: x * x, lambda g, y, x: (2 * g * x,)),
    "transpose": Rule(lambda x: x.transpose(), lambda x: x.T, lambda g, y, x: (g.T,)),
    "reshape": Rule(
        lambda x: x.reshape(x.shape[::-1]),
        lambda x: x.reshape(x.shape[::-1]),
        lambda g, y, x: (g.reshape(x.shape),),
    ),
    "expand": Rule(
        lambda x: x.expand([2, -1]),
        lambda x: np.broadcast_to(x, (2, x.shape[1])),
        lambda g, y, x: (g,),
    ),
    "slice": Rule(lambda x: x[0:1], lambda x: x[0:1], lambda g, y, x: (first_row(g, x),)),
    "sum_dim": Rule(
        lambda x: x.sum_dim(0),
        lambda x: x.sum(0, keepdims=True),
        lambda g, y, x: (np.broadcast_to(g, x.shape),),
    ),
    "mean_dim": Rule(
        lambda x: x.mean_dim(1),
        lambda x: x.mean(1, keepdims=True),
        lambda g, y, x: (np.broadcast_to(g, x.shape) / x.shape[1],),
    ),
    "hypot": Rule(
        lambda a, b: a.hypot(b + 2.5),
        lambda a, b: np.hypot(a, b + 2.5),
        lambda g, y, a, b: (g * a / y, g * (b + 2.5) / y),
        2,
    ),
    "atan2": Rule(
        lambda a, b: a.atan2(b * b + 1.0),
        lambda a, b: np.arctan2(a, b * b + 1.0),
        lambda g, y, a, b: (
            g * (b * b + 1) / ((b * b + 1) ** 2 + a * a),
            -g * a * 2 * b / ((b * b + 1) ** 2 + a * a),
        ),
        2,
    ),
    "linear": Rule(
        lambda a, b: a.linear(b), lambda a, b: a @ b, lambda g, y, a, b: (g @ b.T, a.T @ g), 2
    ),
    "select_add": Rule(
        lambda a, b: a.select_add(1, [0], b[:, 0:1]) if b.shape[0] == a.shape[0] else a + b,
        lambda a, b: (
            np.concatenate([a[:, :1] + b[:, :1], a[:, 1:]], 1)
            if b.shape[0] == a.shape[0]
            else a + b
        ),
        lambda g, y, a, b: (
            g,
            np.concatenate([g[:, :1], 0 * b[:, 1:]], 1) if b.shape[0] == a.shape[0] else g,
        ),
        2,
    ),
    "select": Rule(
        lambda x: x.select(0, [0, 0]),
        lambda x: x[[0, 0]],
        lambda g, y, x: (first_row(g.sum(0, keepdims=True), x),),
    ),
    "gather": Rule(
        lambda x: x.gather(1, np.zeros(x.shape, int)),
        lambda x: np.repeat(x[:, :1], x.shape[1], 1),
        lambda g, y, x: (np.concatenate([g.sum(1, keepdims=True), 0 * x[:, 1:]], 1),),
    ),
    "flip": Rule(lambda x: x.flip([1]), lambda x: x[:, ::-1], lambda g, y, x: (g[:, ::-1],)),
    "repeat": Rule(
        lambda x: x.repeat_dim(0, 2),
        lambda x: np.tile(x, (2, 1)),
        lambda g, y, x: (g[: len(x)] + g[len(x) :],),
    ),
    "cumsum": Rule(
        lambda x: x.cumsum(1),
        lambda x: np.cumsum(x, 1),
        lambda g, y, x: (np.cumsum(g[:, ::-1], 1)[:, ::-1],),
    ),
    "prod_dim": Rule(
        lambda x: (x * x + 0.5).prod_dim(1),
        lambda x: (x * x + 0.5).prod(1, keepdims=True),
        lambda g, y, x: (g * y / (x * x + 0.5) * 2 * x,),
    ),
    "max_dim": Rule(
        lambda x: x.max_dim(0),
        lambda x: x.max(0, keepdims=True),
        lambda g, y, x: (g * (np.arange(len(x))[:, None] == x.argmax(0)),),
    ),
    "sort": Rule(
        lambda x: x.sort(1),
        lambda x: np.sort(x, 1, kind="stable"),
        lambda g, y, x: (np.take_along_axis(g, np.argsort(np.argsort(x, 1, "stable"), 1), 1),),
    ),
    "clamp": Rule(
        lambda x: x.clamp(-0.5, 0.5),
        lambda x: np.clip(x, -0.5, 0.5),
        lambda g, y, x: (g * (np.abs(x) <= 0.5),),
    ),
    "softmax": Rule(
        lambda x: x.softmax(1),
        lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
        lambda g, y, x: (y * (g - (g * y).sum(1, keepdims=True)),),
    ),
    "softplus": Rule(
        lambda x: x.softplus(1.0), lambda x: np.log1p(np.exp(x)), lambda g, y, x: (g * sigma(x),)
    ),
    "atan": Rule(lambda x: x.atan(), np.arctan, lambda g, y, x: (g / (1 + x * x),)),
    "asinh": Rule(lambda x: x.asinh(), np.arcsinh, lambda g, y, x: (g / np.sqrt(1 + x * x),)),
    "log_sigmoid": Rule(
        lambda x: x.log_sigmoid(), lambda x: np.log(sigma(x)), lambda g, y, x: (g * sigma(-x),)
    ),
    "floor": Rule(lambda x: x.floor(), np.floor, lambda g, y, x: (0 * g,)),
}


class Leaf(NamedTuple):
    shape: tuple[int, int]
    tracked: bool
    seed: int

    @property
    def data(self) -> Array:
        return np.random.Generator(np.random.PCG64(self.seed)).uniform(-1.5, 1.5, self.shape)


Call = tuple[str, tuple[int, ...]]


def settle(leaves: list[Leaf], drawn: list[tuple[str, int, int]]) -> tuple[list[Call], list[Array]]:
    """The calls that fit, with operands counted back from the newest, and all values."""
    values = [each.data for each in leaves]
    calls: list[Call] = []
    for name, first, second in drawn:
        rule = RULES[name]
        back = (first, second)[: rule.arity]
        operands = tuple(len(values) - 1 - each % len(values) for each in back)
        try:
            value = rule.value(*[values[i] for i in operands])
        except ValueError:
            continue
        if value.size <= 12 and np.abs(value).max() < 20:
            values.append(value)
            calls.append((name, operands))
    return calls, values


def sum_to(g: Array, shape: tuple[int, ...]) -> Array:
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdims=True)
    return g


def oracle(leaves: list[Leaf], calls: list[Call], values: list[Array]) -> list[Array | None]:
    """The gradient of the sum of the last value for each leaf; None where nothing flows."""
    gradients: list[Array | None] = [None] * len(values)
    gradients[-1] = np.ones_like(values[-1])
    for position in reversed(range(len(leaves), len(values))):
        name, operands = calls[position - len(leaves)]
        g = gradients[position]
        if g is None:
            continue
        flows = RULES[name].gradients(g, values[position], *[values[i] for i in operands])
        for i, flow in zip(operands, flows):
            if flow is not None:
                total = sum_to(flow, values[i].shape)
                before = gradients[i]
                gradients[i] = total if before is None else before + total
    return [gradients[i] if each.tracked else None for i, each in enumerate(leaves)]


def engine(leaves: list[Leaf], calls: list[Call], dev: Device) -> tuple[float, list[Array | None]]:
    tensors = [leaf(dev, each.data, each.tracked) for each in leaves]
    parameters = tensors[:]
    for name, operands in calls:
        tensors.append(RULES[name].engine(*[tensors[i] for i in operands]))
    loss = tensors[-1].sum()
    gradients = backward(loss)
    reached = [gradients.wrt(x) is not None for x in parameters]
    found = [gradient(gradients, x) if yes else None for x, yes in zip(parameters, reached)]
    return loss.item(), found


def check_use_counts(events: list[Event]) -> None:
    """Each value is used as often as it was counted: by a step, or to compute another again."""
    parents = {event.node_id: event.parents for event in of_type(events, NodeCreated)}
    uses = Counter(event.node_id for event in of_type(events, Retrieved))
    for node_id in recomputed(events):
        uses.update(parents[node_id])
    assert uses == required(events)
    (started,) = of_type(events, BackwardStarted)
    assert not set(started.dropped_backups) & set(required(events))


def check_visits(events: list[Event]) -> None:
    """Each retrieval visits as many nodes as it says, the one asked for last."""
    backward_events = [event for event in events if isinstance(event, Retrieved | Visited)]
    walks: list[tuple[Retrieved, list[int]]] = []
    for event in backward_events:
        if isinstance(event, Retrieved):
            walks.append((event, []))
        else:
            walks[-1][1].append(event.node_id)
    for retrieval, visits in walks:
        assert len(visits) == len(set(visits)) == retrieval.n_nodes
        assert visits[-1] == retrieval.node_id


def asked(events: list[Event]) -> list[tuple[int, int]]:
    """Which step asked for which node, in order."""
    return [(event.needed_by, event.node_id) for event in of_type(events, Retrieved)]


LEAVES = st.lists(
    st.builds(
        Leaf,
        st.sampled_from([(2, 2), (2, 3), (1, 3), (2, 1), (1, 1)]),
        st.sampled_from([True, True, False]),
        st.integers(0, 99),
    ),
    min_size=2,
    max_size=4,
)
DRAWN = st.lists(
    st.tuples(st.sampled_from(sorted(RULES)), st.integers(0, 7), st.integers(0, 7)),
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, derandomize=True, database=None)
@given(LEAVES, DRAWN)
def test_random_program(leaves: list[Leaf], drawn: list[tuple[str, int, int]]) -> None:
    calls, values = settle(leaves, drawn)
    expected = oracle(leaves, calls, values)
    assume(calls and any(each is not None for each in expected))
    loss, gradients = engine(leaves, calls, unwatched("none"))
    assert abs(loss - values[-1].sum()) <= 1e-10 * max(1.0, abs(loss))
    for ours, truth in zip(gradients, expected, strict=True):
        assert (ours is None) == (truth is None)
        if ours is not None and truth is not None:
            scale = max(1.0, float(np.abs(truth).max()))
            np.testing.assert_allclose(ours, truth, rtol=1e-10, atol=1e-10 * scale)

    (none, none_log), (balanced, balanced_log) = (watched(name) for name in STRATEGIES)
    for dev in (none, balanced, unwatched("balanced")):
        loss_again, others = engine(leaves, calls, dev)
        assert loss_again == loss
        assert [each is None for each in others] == [each is None for each in gradients]
        assert same_bits(*([x for x in each if x is not None] for each in (others, gradients)))
    check_use_counts(none_log.events)
    check_use_counts(balanced_log.events)
    check_visits(none_log.events)
    check_visits(balanced_log.events)
    assert asked(none_log.events) == asked(balanced_log.events)
    assert recomputed(none_log.events) == []
    again = recomputed(balanced_log.events)
    marked = {
        event.node_id for event in of_type(balanced_log.events, NodeCreated) if event.recompute
    }
    assert len(again) == len(set(again))
    assert set(again) <= marked
