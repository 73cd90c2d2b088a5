"""The memory pass as it went: live bytes at each op, lives, fates, retrievals and costs.

The oracle is by hand, for silu of 8 layers of n x n under this engine's order of ops. Of layer i,
m is the product, s its sigmoid, h = m * s; g is the gradient of what a step takes. Counted are
tensors above parameters and input. A step of layer i works as follows (`+` allocates, `-` frees):

    mul      + a = g * s   - s   d = g * m, written over g (over nothing in layer 8: + d)
    sigmoid  c over d   e = a + c over a   - d   - m
    matmul   + gw = h^T e   - h   + next g = e w^T (not in layer 1)   - e

`balanced` computes s of the layer before the mul of layer 8, and s and h of the layer below before
each matmul; s then stays for that layer's own mul. The counts of the naive order are in the
literature's table (26 and 12 at the highest); overwriting and the order in matmul give 24 and 11.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from ckptcli import Device, device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.measure.trace import Life, Retrieval, TimelinePoint, Trace
from ckptcli.options.workload import WorkloadOptions
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.profiling.trace import MOST_ENTRIES
from ckptcli.workloads.base import ForwardResult, Workload
from ckptcli.workloads.registry import open_workloads
from ckptcli.workloads.silu import SiluNetwork, SiluWorkload
from tests.fake_clock import FakeClock
from tests.helpers import DATA, STRATEGIES

N, LAYERS = 64, 8
TENSOR = N * N * 4
BASE = (LAYERS + 1) * TENSOR
SCALAR = 4

LAYERS_DOWN = range(LAYERS, 0, -1)

AFTER_BACKWARD = {
    "none": {
        8: (24, 22, 22),
        7: (22, 20, 20),
        6: (20, 18, 18),
        5: (18, 16, 16),
        4: (16, 14, 14),
        3: (14, 12, 12),
        2: (12, 10, 10),
        1: (10, 8, 8),
    },
    "balanced": {**dict.fromkeys(range(8, 1, -1), (10, 8, 10)), 1: (10, 8, 8)},
}
"""Tensors live after mul, sigmoid and matmul of each layer."""

WHILE_BACKWARD = {
    "none": {
        8: (24, 24, 23),
        7: (23, 22, 21),
        6: (21, 20, 19),
        5: (19, 18, 17),
        4: (17, 16, 15),
        3: (15, 14, 13),
        2: (13, 12, 11),
        1: (11, 10, 9),
    },
    "balanced": {
        8: (10, 10, 11),
        **dict.fromkeys(range(7, 1, -1), (11, 10, 11)),
        1: (11, 10, 9),
    },
}
"""The most tensors live while mul, sigmoid and matmul of each layer ran."""

AFTER_RECOMPUTE = [9, *[9, 10] * 7]
"""Under `balanced`: s of layer 8, then s and h of each layer below."""

AFTER_FORWARD = {
    "none": [(3 * layer - 2, 3 * layer - 1, 3 * layer) for layer in range(1, 9)],
    "balanced": [(1, 2, 3), *[(layer + 1, layer + 1, layer + 2) for layer in range(2, 9)]],
}
"""After matmul, sigmoid and mul; a layer's h is let go of once the next product is there."""


def passed(strategy: str, workload: Workload | None = None) -> MemoryPass:
    network = SiluWorkload(LAYERS, N) if workload is None else workload
    return memory_pass(network, device(), parse_strategy(strategy), workspace=False)


@pytest.fixture(scope="module", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def measured(strategy: str) -> MemoryPass:
    return passed(strategy)


def program(folder: Path, *ops: dict[str, object]) -> Workload:
    path = folder / "program.json"
    path.write_text(json.dumps({"ops": ops, "root": len(ops) - 1}))
    return open_workloads(f"graph:{path}", WorkloadOptions())[0]


def points(measured: MemoryPass, phase: str) -> list[TimelinePoint]:
    return [point for point in measured.trace.timeline if point.phase == phase]


def tensors(size_bytes: int, scalars: int = 1) -> float:
    """Tensors above parameters and input, beside so many scalars."""
    return (size_bytes - BASE - scalars * SCALAR) / TENSOR


def ids(layer: int) -> tuple[int, int, int]:
    """The nodes m, s and h of a layer, 1 to 8: eight weights and the input come first."""
    first = LAYERS + 1 + 3 * (layer - 1)
    return first, first + 1, first + 2


def test_the_forward_pass_op_by_op(measured: MemoryPass, strategy: str) -> None:
    *inner, last = points(measured, "forward")
    seen = [(point.node, point.op, tensors(point.end_bytes, scalars=0)) for point in inner]
    assert seen == [
        row
        for layer, counts in zip(range(1, 9), AFTER_FORWARD[strategy])
        for row in zip(ids(layer), ("matmul", "sigmoid", "mul"), counts)
    ]
    assert (last.node, last.op) == (3 * LAYERS + LAYERS + 1, "sum")


def test_the_backward_pass_op_by_op(measured: MemoryPass, strategy: str) -> None:
    first, *inner = points(measured, "backward")
    assert (first.op, tensors(first.end_bytes, scalars=2)) == (
        "sum",
        {"none": 23, "balanced": 8}[strategy],
    )
    ended = [(point.node, point.op, tensors(point.end_bytes)) for point in inner]
    assert ended == [
        row
        for layer in LAYERS_DOWN
        for row in zip(
            reversed(ids(layer)), ("mul", "sigmoid", "matmul"), AFTER_BACKWARD[strategy][layer]
        )
    ]


def test_the_most_that_is_live_while_a_step_runs(measured: MemoryPass, strategy: str) -> None:
    """The seed of the gradient, a second scalar, lives until the mul of layer 8 has used it."""
    highs = [tensors(point.high_bytes) for point in points(measured, "backward")[1:]]
    expected = [count for layer in LAYERS_DOWN for count in WHILE_BACKWARD[strategy][layer]]
    assert highs[0] == expected[0] + SCALAR / TENSOR
    assert highs[1:] == expected[1:]


def test_what_is_recomputed_op_by_op() -> None:
    found = points(passed("balanced"), "recompute")
    _, s, _ = ids(8)
    below = [row for layer in range(7, 0, -1) for row in zip(ids(layer)[1:], ("sigmoid", "mul"))]
    assert [(point.node, point.op) for point in found] == [(s, "sigmoid"), *below]
    ends = [tensors(point.end_bytes, scalars=2 if i == 0 else 1) for i, point in enumerate(found)]
    assert ends == AFTER_RECOMPUTE
    assert points(passed("none"), "recompute") == []


def test_recomputation_stands_before_the_step_that_asks_for_it() -> None:
    timeline = passed("balanced").trace.timeline
    order = [(point.phase[0], point.node) for point in timeline if point.phase != "forward"]
    expected: list[tuple[str, int | None]] = [("b", 33)]
    for layer in LAYERS_DOWN:
        m, s, h = ids(layer)
        expected += [("r", s)] if layer == LAYERS else []
        expected += [("b", h), ("b", s)]
        if layer > 1:
            _, s_below, h_below = ids(layer - 1)
            expected += [("r", s_below), ("r", h_below)]
        expected.append(("b", m))
    assert order == expected


@pytest.mark.parametrize(("name", "peak"), [("none", 24), ("balanced", 11)])
def test_the_peak_of_the_timeline_is_the_ledgers(name: str, peak: int) -> None:
    measured = passed(name)
    memory, timeline = measured.memory, measured.trace.timeline
    assert max(point.high_bytes for point in timeline) == memory.ledger_peak_bytes
    for phase, expected in (
        ("forward", memory.ledger_peak_forward_bytes),
        ("backward", memory.ledger_peak_backward_bytes),
    ):
        highs = [p.high_bytes for p in timeline if (p.phase == "forward") == (phase == "forward")]
        assert max(highs) == expected
    assert int(tensors(memory.ledger_peak_backward_bytes)) == peak
    assert timeline[-1].end_bytes == memory.after_backward_bytes == BASE + 8 * TENSOR + SCALAR


def test_points_follow_each_other(measured: MemoryPass) -> None:
    timeline = measured.trace.timeline
    assert timeline[0].start_s == 0.0
    for before, after in itertools.pairwise(timeline):
        assert after.start_s == before.end_s
        assert after.end_s >= after.start_s
        assert after.high_bytes >= max(before.end_bytes, after.end_bytes)


def live_after(lives: tuple[Life, ...], index: int) -> list[Life]:
    return [
        life for life in lives if life.born <= index and (life.died is None or life.died > index)
    ]


def test_lives_add_up_to_the_timeline(measured: MemoryPass) -> None:
    lives = tuple(measured.trace.lives)
    for index, point in enumerate(measured.trace.timeline):
        assert sum(life.bytes for life in live_after(lives, index)) == point.end_bytes
        touched = [
            life
            for life in lives
            if life.born <= index <= (index if life.died is None else life.died)
        ]
        assert sum(life.bytes for life in touched) >= point.high_bytes
    assert not any(life.died is not None and life.died < life.born for life in lives)


def test_lives_are_named(measured: MemoryPass, strategy: str) -> None:
    lives = measured.trace.lives
    named = [(life.why, life.op) for life in lives if life.bytes == TENSOR]
    assert named.count(("parameter", None)) == LAYERS
    assert named.count(("input", None)) == 1
    held = {"none": (8, 8, 7), "balanced": (8, 0, 0)}[strategy]
    for op, count in zip(("matmul", "sigmoid", "mul"), held):
        assert named.count(("saved", op)) == count
        assert named.count(("value", op)) == LAYERS - count
    assert named.count(("gradient of a parameter", None)) == LAYERS
    recomputed = {"none": (0, 0), "balanced": (8, 7)}[strategy]
    assert (
        named.count(("recomputed", "sigmoid")),
        named.count(("recomputed", "mul")),
    ) == recomputed
    kept = [life.why for life in lives if life.died is None and life.bytes == TENSOR]
    assert sorted(kept) == sorted([*["parameter", "gradient of a parameter"] * LAYERS, "input"])


def test_a_product_lives_until_its_sigmoids_step(measured: MemoryPass) -> None:
    """m is the last value that a layer's backward steps need; s goes with the mul before it."""
    timeline = measured.trace.timeline
    for layer in range(1, LAYERS + 1):
        m, s, _ = ids(layer)
        (life,) = [x for x in measured.trace.lives if (x.node, x.why) == (m, "saved")]
        assert life.died is not None
        assert (timeline[life.born].phase, timeline[life.born].node) == ("forward", m)
        assert (timeline[life.died].phase, timeline[life.died].node) == ("backward", s)


FATES = {
    "none": {"saved": 8 + 8 + 7, "recomputed": 0},
    "balanced": {"saved": 8, "recomputed": 8 + 7},
}
"""From the rules: sigmoid keeps m, mul keeps m and s, matmul keeps h. Nobody keeps the last h."""


def test_fates(measured: MemoryPass, strategy: str) -> None:
    fates = [node.fate for node in measured.trace.nodes]
    expected = {**FATES[strategy], "dropped": 1, "output": 1, "parameter": LAYERS, "input": 1}
    assert {fate: fates.count(fate) for fate in expected} == expected
    assert len(fates) == sum(expected.values())
    assert measured.memory.saved_tensors == FATES[strategy]["saved"]
    assert measured.memory.saved_bytes == FATES[strategy]["saved"] * TENSOR
    assert measured.outcome.recomputed_nodes == FATES[strategy]["recomputed"]


def test_uses(measured: MemoryPass, strategy: str) -> None:
    """One for each step that keeps the value; for what is recomputed, one a parent's edge more."""
    uses = {node.node: node.uses for node in measured.trace.nodes}
    for layer in range(1, LAYERS + 1):
        expected = {"none": (2, 1, 1), "balanced": (4, 2, 1)}[strategy]
        if layer == LAYERS:
            expected = {"none": (2, 1, 0), "balanced": (3, 1, 0)}[strategy]
        assert tuple(uses[node] for node in ids(layer)) == expected
    assert [uses[weight] for weight in range(LAYERS)] == [0, *[1] * (LAYERS - 1)]
    assert uses[LAYERS] == 1, "the input, for the gradient of the first weight"


def test_nodes_say_their_parents_and_sizes(measured: MemoryPass) -> None:
    nodes = {node.node: node for node in measured.trace.nodes}
    assert list(nodes) == list(range(LAYERS + 1 + 3 * LAYERS + 1))
    for layer in range(1, LAYERS + 1):
        m, s, h = ids(layer)
        below = LAYERS if layer == 1 else ids(layer - 1)[2]
        parents = [tuple(nodes[node].parents) for node in (m, s, h)]
        assert parents == [(below, layer - 1), (m,), (m, s)]
        assert {(nodes[node].shape, nodes[node].bytes) for node in (m, s, h)} == {((N, N), TENSOR)}


@pytest.mark.parametrize("name", STRATEGIES)
def test_retrievals_are_burns(name: str) -> None:
    """The golden log of 2 layers: who is retrieved, and what is visited under it."""
    expected: list[tuple[int, list[int]]] = []
    for line in (DATA / f"silu_2x64_{name}_full.log").read_text().splitlines():
        node = int(re.findall(r"value: (\d+)", line)[0])
        if line.startswith("retrieve"):
            expected.append((node, []))
        else:
            expected[-1][1].append(node)
    found = passed(name, SiluWorkload(2, 64)).trace.retrievals
    assert [(entry.node, list(entry.visited)) for entry in found] == expected
    assert [entry.needed_by for entry in found] == [8, 8, 7, 6, 6, 5, 5, 4, 3]
    assert found[-1] == Retrieval(2, 3, (2,))


@pytest.mark.parametrize(("dtype", "element_bytes"), [("float32", 4), ("float64", 8)])
@pytest.mark.parametrize("batch", [N, 16])
def test_costs_by_hand(batch: int, dtype: str, element_bytes: int) -> None:
    """A product of (b, n) and (n, n) takes 2 b n^2; an element-wise op one an element."""
    weight, value = N * N, batch * N
    product_moved = value + weight + value
    sigmoid_moved, mul_moved, sum_moved = 2 * value, 3 * value, value + 1
    for name, sigmoids, muls in (("none", 0, 0), ("balanced", 8, 7)):
        cost = passed(name, SiluWorkload(LAYERS, N, batch, dtype)).cost
        assert cost.forward_flops == LAYERS * (2 * batch * N * N + 2 * value) + value
        assert cost.forward_moved_bytes == element_bytes * (
            LAYERS * (product_moved + sigmoid_moved + mul_moved) + sum_moved
        )
        assert cost.recomputed_flops == (sigmoids + muls) * value
        moved = sigmoids * sigmoid_moved + muls * mul_moved
        assert cost.recomputed_moved_bytes == element_bytes * moved
        assert cost.recomputed_flops_share == cost.recomputed_flops / cost.forward_flops
        assert (
            cost.recomputed_moved_bytes_share
            == cost.recomputed_moved_bytes / cost.forward_moved_bytes
        )


def test_the_shares_at_the_size_of_the_experiment() -> None:
    """n = 1024: little arithmetic, much traffic; from the formulas of the test above."""
    n = 1024
    flops = 15 * n**2 / (8 * (2 * n**3 + 2 * n**2) + n**2)
    moved = (8 * 2 + 7 * 3) / (8 * (3 + 2 + 3) + 1)
    assert flops == pytest.approx(0.0009, abs=1e-4)
    assert moved == pytest.approx(0.569, abs=1e-3)


def test_views_move_nothing_and_functions_count_one(tmp_path: Path) -> None:
    leaf: dict[str, object] = {"op": "leaf", "req": True, "data": [1.0] * 6, "shape": [2, 3]}
    swap: dict[str, object] = {"op": "swap_dims", "in": [0], "dim1": 0, "dim2": 1}
    exp: dict[str, object] = {"op": "exp", "in": [1]}
    total: dict[str, object] = {"op": "sum", "in": [2]}
    cost = passed("none", program(tmp_path, leaf, swap, exp, total)).cost
    assert cost.forward_flops == 0 + 6 + 6
    assert cost.forward_moved_bytes == 8 * (0 + 12 + 7)


def chain(folder: Path, name: str, length: int) -> Workload:
    leaf: dict[str, object] = {"op": "leaf", "req": True, "data": [0.5, 0.5, 0.5, 0.5]}
    ops: list[dict[str, object]] = [{"op": name, "in": [i]} for i in range(length)]
    return program(folder, leaf, *ops, {"op": "sum", "in": [length]})


def lists_of(trace: Trace) -> list[tuple[object, ...]]:
    whole = [tuple(trace.timeline), tuple(trace.lives), tuple(trace.nodes), tuple(trace.retrievals)]
    inner = [entry.visited for entry in trace.retrievals] + [node.parents for node in trace.nodes]
    return [*whole, *(tuple(entries) for entries in inner)]


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_long_program_is_cut_to_what_a_page_shows(tmp_path: Path, name: str) -> None:
    measured = passed(name, chain(tmp_path, "sin", 2 * MOST_ENTRIES))
    trace = measured.trace
    assert trace.cut
    assert max(len(entries) for entries in lists_of(trace)) <= MOST_ENTRIES
    assert max(p.high_bytes for p in trace.timeline) == measured.memory.ledger_peak_bytes


@pytest.mark.parametrize("length", [3, MOST_ENTRIES])
def test_lives_point_into_the_timeline(tmp_path: Path, length: int) -> None:
    trace = passed("none", chain(tmp_path, "sin", length)).trace
    assert trace.cut == (length == MOST_ENTRIES)
    last = len(trace.timeline) - 1
    for life in trace.lives:
        assert 0 <= life.born <= last
        assert life.died is None or life.born <= life.died <= last
        point = trace.timeline[life.born]
        assert life.bytes <= point.high_bytes


@pytest.mark.filterwarnings("ignore::ckptcli.errors.UntrackedBackwardWarning")
def test_a_program_without_backward_steps_has_a_timeline(tmp_path: Path) -> None:
    leaf: dict[str, object] = {"op": "leaf", "data": [1.0, 2.0, 3.0, 4.0]}
    measured = passed("none", program(tmp_path, leaf, {"op": "exp", "in": [0]}))
    assert [(p.phase, p.op) for p in measured.trace.timeline] == [("forward", "exp")]
    last = len(measured.trace.timeline) - 1
    assert all(life.born <= last for life in measured.trace.lives)
    assert [node.fate for node in measured.trace.nodes] == ["input", "output"]


class SlowNetwork(SiluNetwork):
    """Computes while it is loaded, which takes 2 s; half a second passes before its first layer."""

    def __init__(self, network: SiluNetwork, clock: FakeClock) -> None:
        super().__init__(network.weights, network.x.exp())
        self.clock = clock
        clock.advance(2.0)

    def forward(self) -> ForwardResult:
        self.clock.advance(0.5)
        return super().forward()


def test_no_op_contains_loading_the_program() -> None:
    clock = FakeClock()

    class Slow(SiluWorkload):
        def load(self, device: Device) -> SiluNetwork:
            return SlowNetwork(super().load(device), clock)

    strategy = parse_strategy("none")
    timeline = memory_pass(Slow(2, 8), device(), strategy, clock=clock).trace.timeline
    times_s = [(point.op, point.start_s, point.end_s) for point in timeline]
    assert times_s[:3] == [("exp", 0.0, 0.0), ("matmul", 0.0, 0.5), ("sigmoid", 0.5, 0.5)]
    assert times_s[-1][2] == 0.5
