"""Regions in regions, deep: what is worked out without walking them is what walking them gives."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli import Tensor, device
from ckptcli.autodiff import device as device_module
from ckptcli.checkpoint.policies import Policy, dots_saveable, everything_saveable, nothing_saveable
from ckptcli.checkpoint.region_plan import Plans, let_go
from ckptcli.checkpoint.regions import Region
from ckptcli.events import Recomputed, Recorder
from ckptcli.graph import Node
from tests.helpers import backward, gradient, of_type

POLICIES: list[Policy] = [
    nothing_saveable,
    dots_saveable,
    everything_saveable,
    lambda info: len(info.op) % 2 == 0,
]

OPEN = st.tuples(st.just("open"), st.integers(0, len(POLICIES) - 1), st.just(0))
CLOSE = st.tuples(st.just("close"), st.just(0), st.just(0))
OP = st.tuples(
    st.sampled_from(["sin", "mul", "matmul", "tanh"]), st.integers(0, 6), st.integers(0, 6)
)
PROGRAMS = st.lists(st.one_of(OPEN, CLOSE, OP), max_size=40)


def run(program: list[tuple[str, int, int]], regions: list[Region]) -> Any:
    """The leaf's gradient; `regions` gets every region in the order in which they are opened."""
    dev = device().autodiff()
    x = dev.tensor([[0.3, -0.2], [0.1, 0.4]]).require_grad()
    values = [x]
    is_open: list[Region] = []
    for name, first, second in program:
        if name == "open":
            is_open.append(dev.open_region(f"r{len(regions)}", POLICIES[first]))
            regions.append(is_open[-1])
        elif name == "close":
            if is_open:
                dev.close_region(is_open.pop())
        else:
            a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
            values.append(getattr(a, name)(*([b] if name in ("mul", "matmul") else [])))
    for region in is_open[::-1]:
        dev.close_region(region)
    loss = values[-1] * values[0]
    return gradient(backward(loss.sum()), x)


def asked_of_outside(nodes: list[Node]) -> set[int]:
    """What the plans of all regions have from outside, for all that steps saved and do not hold."""
    plans = Plans()
    for step in nodes:
        for node, value in zip(step.saved, step.saved_values, strict=True):
            if value is None:
                plans.ask(node, step.region)
    plans.complete()
    return {node.id for node in plans.top} | set(plans.held_inputs())


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS)
def test_what_is_needed_from_outside_is_what_the_plans_ask_of_it(
    program: list[tuple[str, int, int]],
) -> None:
    asked = []

    def both(nodes: list[Node]) -> set[int]:
        planned = asked_of_outside(nodes)
        found = let_go(nodes)
        asked.append(found == planned)
        return found

    with mock.patch.object(device_module, "let_go", both):
        regions: list[Region] = []
        in_regions = run(program, regions)
    assert all(asked)
    assert len(asked) == sum(region.parent is None for region in regions)
    plain = run([call for call in program if call[0] not in ("open", "close")], [])
    assert in_regions.tobytes() == plain.tobytes()


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS)
def test_a_region_contains_those_whose_parents_lead_to_it(
    program: list[tuple[str, int, int]],
) -> None:
    regions: list[Region] = []
    run(program, regions)
    for inner in regions:
        around = set()
        region: Region | None = inner
        while region is not None:
            around.add(region)
            region = region.parent
        assert {outer for outer in regions if outer.contains(inner)} == around


def nest(depth: int, is_followed: bool, recorder: Recorder | None = None) -> tuple[Tensor, Tensor]:
    """A leaf, and sin in each of `depth` regions in one another, at its end too if so."""
    dev = device().autodiff()
    x = (dev if recorder is None else dev.watched_by(recorder)).tensor([0.5]).require_grad()
    y, regions = x, []
    for level in range(depth):
        regions.append(y.device.open_region(f"level {level}", nothing_saveable))
        y = y.sin()
    for region in regions[::-1]:
        if is_followed:
            y = y.sin()
        y.device.close_region(region)
    return x, y


@pytest.mark.parametrize(
    ("depth", "is_followed", "ops"),
    [(20, False, 19), (40, False, 39), (20, True, 400), (40, True, 1600)],
)
def test_ops_that_run_again(depth: int, is_followed: bool, ops: int) -> None:
    """One a level; with an op after the inner region each level runs all inside it once more."""
    recorder = Recorder()
    _, y = nest(depth, is_followed, recorder)
    backward(y)
    assert len(of_type(recorder.events, Recomputed)) == ops


def lines_run_to_close(depth: int) -> int:
    """How many lines run in `let_go` when `depth` regions in one another are closed."""
    lines = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code is not let_go.__code__:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        nest(depth, True)
    finally:
        sys.settrace(before)
    return lines


def test_closing_looks_at_each_value_once() -> None:
    """At any depth; it was each once for every level."""
    short, long = lines_run_to_close(100), lines_run_to_close(200)
    assert 0 < long - short == lines_run_to_close(300) - long


@pytest.mark.parametrize("depth", [2000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_deep_nest_is_that_of_a_chain(depth: int) -> None:
    x, y = nest(depth, False)
    inside = gradient(backward(y), x)
    leaf = device().autodiff().tensor([0.5]).require_grad()
    z = leaf
    for _ in range(depth):
        z = z.sin()
    assert inside.tobytes() == gradient(backward(z), leaf).tobytes()
