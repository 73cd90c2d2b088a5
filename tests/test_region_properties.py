"""Random programs in random, also nested, regions under random policies against `none`.

A program is a list of calls of `test_properties`; brackets say where regions open and close.
"""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from ckptcli import Device, Tensor, device
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.policies import (
    Policy,
    dots_saveable,
    everything_saveable,
    nothing_saveable,
    save_any_names_but_these,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import Recorder
from tests.helpers import backward, gradient, leaf, recomputed, same_bits, unwatched
from tests.regions import own_output, sin
from tests.test_properties import DRAWN, LEAVES, RULES, Call, Leaf, settle

POLICIES: list[Policy] = [
    nothing_saveable,
    nothing_saveable,
    everything_saveable,
    dots_saveable,
    save_only_these_names("a"),
    save_any_names_but_these("a"),
    save_from_both_policies(dots_saveable, save_only_these_names("b")),
    lambda info: len(info.op) % 2 == 0,
]


class Bracket(NamedTuple):
    """Before the call at `position`: how many regions close, and the policies of those that open.

    `name` is given to a value that many calls back.
    """

    position: int
    closes: int
    opens: list[int]
    name: str | None
    back: int


BRACKETS = st.lists(
    st.builds(
        Bracket,
        st.integers(0, 24),
        st.integers(0, 3),
        st.lists(st.integers(0, len(POLICIES) - 1), max_size=2),
        st.sampled_from([None, "a", "b"]),
        st.integers(0, 5),
    ),
    max_size=10,
)


class Run(NamedTuple):
    gradients: list[Any]
    again: Counter[int]
    depths: dict[int, int]
    """Node id -> how many regions are around it."""


def run_program(
    leaves: list[Leaf], calls: list[Call], brackets: list[Bracket], dev: Device, recorder: Recorder
) -> Run:
    tensors = [leaf(dev, each.data, each.tracked) for each in leaves]
    depths: dict[int, int] = {tensor.node.id: 0 for tensor in tensors}
    by_position: dict[int, list[Bracket]] = {}
    for bracket in brackets:
        by_position.setdefault(bracket.position, []).append(bracket)
    parameters = tensors[:]
    open_regions: list[ExitStack] = []
    for position, (name, operands) in enumerate(calls):
        for bracket in by_position.get(position, ()):
            for _ in range(min(bracket.closes, len(open_regions))):
                open_regions.pop().close()
            for policy in bracket.opens:
                open_regions.append(ExitStack())
                open_regions[-1].enter_context(tensors[0].region("r", POLICIES[policy]))
            if bracket.name is not None:
                checkpoint_name(tensors[-1 - bracket.back % len(tensors)], bracket.name)
        tensors.append(RULES[name].engine(*[tensors[i] for i in operands]))
        for node_id in range(len(depths), tensors[-1].node.id + 1):
            depths[node_id] = len(open_regions)
    while open_regions:
        open_regions.pop().close()
    gradients = backward(tensors[-1].sum())
    del tensors
    found = [
        None if gradients.wrt(tensor) is None else gradient(gradients, tensor).copy()
        for tensor in parameters
    ]
    return Run(found, Counter(recomputed(recorder.events)), depths)


def watched_ledger(strategy: str) -> tuple[Device, Recorder, Ledger]:
    ledger, recorder = Ledger(), Recorder()
    dev = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(recorder, TrackedBackend(NumpyBackend(), ledger)), recorder, ledger


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["none", "balanced"])
@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(LEAVES, DRAWN, BRACKETS)
def test_random_regions(
    strategy: str,
    leaves: list[Leaf],
    drawn: list[tuple[str, int, int]],
    brackets: list[Bracket],
) -> None:
    calls, _ = settle(leaves, drawn)
    assume(calls and is_tracked(leaves, calls))
    expected = run_program(leaves, calls, [], unwatched("none"), Recorder())

    gc.disable()
    try:
        dev, recorder, ledger = watched_ledger(strategy)
        found = run_program(leaves, calls, brackets, dev, recorder)
        left_bytes = ledger.bytes_in_use
    finally:
        gc.enable()
    compared = [[each for each in run.gradients if each is not None] for run in (expected, found)]
    assert same_bits(*compared)
    assert [each is None for each in found.gradients] == [
        each is None for each in expected.gradients
    ]
    assert left_bytes == 0
    outside = 1 if strategy == "balanced" else 0
    for node, times in found.again.items():
        assert times <= max(found.depths[node], outside)


def is_tracked(leaves: list[Leaf], calls: list[Call]) -> bool:
    """Whether a gradient flows from the last value."""
    dev = unwatched("none")
    tensors = [leaf(dev, each.data, each.tracked) for each in leaves]
    for name, operands in calls:
        tensors.append(RULES[name].engine(*[tensors[i] for i in operands]))
    return bool(tensors[-1].node.tracked)


def work(layers: int) -> Counter[str]:
    """Events of a pass by kind, and the largest of what one of them lists."""
    recorder = Recorder()
    dev = device().autodiff().gradient_checkpointing(parse_strategy("remat")).watched_by(recorder)
    w = leaf(dev, [[0.9]])
    h = leaf(dev, [[0.5]], tracked=False)
    for _ in dev.layers(layers):
        p = h * w
        h = p.sigmoid() * p
    backward(h.sum())
    return Counter(type(event).__name__ for event in recorder.events)


@pytest.mark.slow
def test_the_work_of_a_layer_does_not_grow_with_their_number() -> None:
    few, many = work(200), work(2000)
    for kind, count in few.items():
        assert many[kind] <= 10 * (count + 5), kind


class _CountedPolicy:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, info: Any) -> bool:
        self.asked += 1
        return False


def test_a_policy_is_asked_once_for_each_value() -> None:
    policy = _CountedPolicy()
    dev = unwatched("none")
    h = leaf(dev, [0.5])
    for _ in range(500):
        with h.region("layer", policy):
            h = h.exp().sin()
    backward(h.sum())
    assert policy.asked == 1000


@pytest.mark.parametrize("op", [own_output, sin])
def test_three_hundred_nested_regions(op: Any) -> None:
    """Deeper than half of Python's recursion limit allows a walk that recurses twice a level."""

    def pure(depth: int) -> list[Any]:
        dev = unwatched("none")
        x = leaf(dev, [[0.3, 0.7]])
        with ExitStack() as regions:
            for level in range(depth):
                regions.enter_context(x.region(f"level {level}"))
            y = op(x + 1.0)
        gradients = backward(y.sum())
        return [gradient(gradients, x)]

    assert same_bits(pure(300), pure(0))


def test_three_hundred_nested_regions_with_an_op_on_each_level() -> None:
    depth = 300

    def program(regions: bool) -> tuple[list[Any], int]:
        recorder = Recorder()
        dev = device().autodiff().watched_by(recorder)
        x = leaf(dev, [[0.3, 0.7]])
        h = x
        with ExitStack() as opened:
            for level in range(depth):
                if regions:
                    opened.enter_context(x.region(f"level {level}"))
                h = h.sin()
        gradients = backward(h.sum())
        return [gradient(gradients, x)], len(recomputed(recorder.events))

    (found, again), (expected, none) = program(True), program(False)
    assert same_bits(found, expected)
    assert none == 0
    assert again <= depth * (depth + 1) // 2


@pytest.mark.slow
def test_one_region_over_ten_thousand_ops() -> None:
    """No walk over a region recurses, or repeats for each op."""

    def chain(h: Tensor) -> Tensor:
        for _ in range(10_000):
            h = h.sin()
        return h

    dev = unwatched("none")
    x = leaf(dev, np.array([0.5]))
    found = gradient(backward(checkpoint(chain)(x)), x)
    assert same_bits([found], [gradient(backward(chain(x)), x)])
