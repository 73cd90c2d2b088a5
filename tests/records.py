"""Hand-made records: the silu network of 2 layers at n = 1024, scripted times, a fixed machine.

Live bytes are given in tensors of n x n above two weights and the input; the sum's scalar and the
seed of its gradient are left out. Change one with `dataclasses.replace`, then `run_record` derives
what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ckptcli.measure.analysis import analysed
from ckptcli.measure.compiled import Compiled, Plan
from ckptcli.measure.machine import Machine
from ckptcli.measure.memory import LiveTensor, Memory, PeakLive, held_alone
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Sample
from ckptcli.measure.row import Agreement, Cost, Outcome, Passes, Row
from ckptcli.measure.trace import Life, NodeFate, Retrieval, TimelinePoint, Trace

N = 1024
TENSOR = N * N * 4
BASE = 3 * TENSOR
SHAPE = (N, N)

STEADY = tuple(0.100 + 0.0002 * (i % 3) for i in range(9))
"""Nine rounds whose interval is narrow."""

MACHINE = Machine(
    cpu="Example CPU 3000",
    cores=8,
    memory_bytes=32 * 2**30,
    os="Linux-6.1-x86_64",
    python="3.12.1",
    numpy="2.1.0",
    blas="openblas 0.3.27 Zen",
    blas_threads=8,
    openblas_variables={},
)

Point = tuple[str, int, str, int, int]
"""Phase, node, op, the most tensors live while it ran, tensors live after it."""

NONE_POINTS: tuple[Point, ...] = (
    ("forward", 3, "matmul", 1, 1),
    ("forward", 4, "sigmoid", 2, 2),
    ("forward", 5, "mul", 3, 3),
    ("forward", 6, "matmul", 4, 4),
    ("forward", 7, "sigmoid", 5, 5),
    ("forward", 8, "mul", 6, 6),
    ("forward", 9, "sum", 6, 6),
    ("backward", 9, "sum", 6, 5),
    ("backward", 8, "mul", 6, 6),
    ("backward", 7, "sigmoid", 6, 4),
    ("backward", 6, "matmul", 5, 4),
    ("backward", 5, "mul", 5, 4),
    ("backward", 4, "sigmoid", 4, 2),
    ("backward", 3, "matmul", 3, 2),
)
BALANCED_POINTS: tuple[Point, ...] = (
    ("forward", 3, "matmul", 1, 1),
    ("forward", 4, "sigmoid", 2, 2),
    ("forward", 5, "mul", 3, 3),
    ("forward", 6, "matmul", 3, 3),
    ("forward", 7, "sigmoid", 4, 4),
    ("forward", 8, "mul", 5, 5),
    ("forward", 9, "sum", 5, 3),
    ("backward", 9, "sum", 3, 2),
    ("recompute", 7, "sigmoid", 3, 3),
    ("backward", 8, "mul", 4, 4),
    ("backward", 7, "sigmoid", 4, 2),
    ("recompute", 4, "sigmoid", 3, 3),
    ("recompute", 5, "mul", 4, 4),
    ("backward", 6, "matmul", 5, 4),
    ("backward", 5, "mul", 5, 4),
    ("backward", 4, "sigmoid", 4, 2),
    ("backward", 3, "matmul", 3, 2),
)


def samples(times_s: Iterable[float], forward_share: float = 0.4) -> tuple[Sample, ...]:
    """One sample a time; forward takes `forward_share` of it."""
    return tuple(Sample(t * forward_share, t - t * forward_share, 1234.5) for t in times_s)


def none_record(times_s: Sequence[float] = STEADY, **changes: Any) -> Row:
    """`none`: holds m, s and h of each layer but the last h."""
    at_peak = {"parameter": 2, "input": 1, "saved": 5, "gradient": 1}
    record = Row(
        strategy="none",
        device="Device<Autodiff { device: Numpy(Cpu), checkpointing: Disabled }>",
        reference=False,
        memory=_memory(saved=5, forward_peak=6, backward_peak=6, at_peak=at_peak),
        outcome=_outcome({}),
        cost=_cost(recomputed_flops=0, recomputed_moved=0),
        passes=Passes(),
        trace=_trace(NONE_POINTS, {3: "saved", 4: "saved", 5: "saved", 6: "saved", 7: "saved"}),
    )
    return changed(_timed(record, times_s), **changes)


def balanced_record(times_s: Sequence[float] = STEADY, **changes: Any) -> Row:
    """`balanced`: holds the products, computes the rest again."""
    at_peak = {
        "parameter": 2,
        "input": 1,
        "saved": 1,
        "recomputed": 2,
        "gradient": 1,
        "gradient of a parameter": 1,
    }
    fates = {3: "saved", 4: "recomputed", 5: "recomputed", 6: "saved", 7: "recomputed"}
    record = Row(
        strategy="balanced",
        device="Device<Autodiff { device: Numpy(Cpu), checkpointing: Balanced }>",
        reference=False,
        memory=_memory(saved=2, forward_peak=5, backward_peak=5, at_peak=at_peak),
        outcome=_outcome({"mul": 1, "sigmoid": 2}),
        cost=_cost(recomputed_flops=3 * N * N, recomputed_moved=7 * TENSOR),
        passes=Passes(),
        trace=_trace(BALANCED_POINTS, fates),
    )
    return changed(_timed(record, times_s), **changes)


def run_record(*rows: Row, **changes: Any) -> RunRecord:
    """A whole run of these rows, by default of both, with all that is derived."""
    record = RunRecord(
        workload={
            "name": "silu",
            "title": f"n = {N}, layers = 2",
            "layers": 2,
            "n": N,
            "batch": N,
            "dtype": "float32",
        },
        device="Numpy(Cpu)",
        machine=MACHINE,
        version="0.1.0",
        seed=0,
        processes=1,
        threshold=0.02,
        stopped="every interval within 1 % after 9 rounds",
        partial=False,
        config={"layers": 2, "n": N, "batch": None, "dtype": "float32", "threads": None},
        warnings=(),
        rows=rows or (none_record(), balanced_record()),
        library="NumPy 2.1.0",
    )
    return analysed(replace(record, **changes))


def changed(row: Row, **changes: Any) -> Row:
    """The row with other fields; `samples` and `warmup` are those of its passes."""
    passes = Passes(
        changes.pop("warmup", row.passes.warmup), changes.pop("samples", row.passes.counted)
    )
    return replace(row, passes=passes, **changes)


def _timed(record: Row, times_s: Sequence[float]) -> Row:
    return replace(record, passes=Passes(samples([0.125]), samples(times_s)))


def _memory(
    *, saved: int, forward_peak: int, backward_peak: int, at_peak: dict[str, int]
) -> Memory:
    largest = tuple(
        LiveTensor(None, None, SHAPE, TENSOR, why)
        for why, count in at_peak.items()
        for _ in range(count)
    )
    return Memory(
        params_input_bytes=BASE,
        after_forward_bytes=BASE + saved * TENSOR,
        saved_bytes=saved * TENSOR,
        saved_tensors=saved,
        ledger_peak_forward_bytes=BASE + forward_peak * TENSOR,
        ledger_peak_backward_bytes=BASE + backward_peak * TENSOR,
        traced_peak_forward_bytes=BASE + forward_peak * TENSOR + 1024,
        traced_peak_backward_bytes=BASE + backward_peak * TENSOR + TENSOR // 2,
        peak_live=PeakLive(
            largest=largest,
            total_bytes=len(largest) * TENSOR,
            total_tensors=len(largest),
            bytes_by_why={why: count * TENSOR for why, count in sorted(at_peak.items())},
        ),
        after_backward_bytes=BASE + 2 * TENSOR,
    )


def _outcome(recomputed_by_op: dict[str, int]) -> Outcome:
    return Outcome(
        loss=211.5, grad_sum_w0=1234.5, grad_sha256="ab" * 32, recomputed_by_op=recomputed_by_op
    )


def _cost(*, recomputed_flops: int, recomputed_moved: int) -> Cost:
    return Cost(
        forward_flops=2 * 2 * N**3 + 5 * N * N,
        forward_moved_bytes=17 * TENSOR + 4,
        recomputed_flops=recomputed_flops,
        recomputed_moved_bytes=recomputed_moved,
    )


def _trace(points: Sequence[Point], fates: dict[int, str]) -> Trace:
    timeline = tuple(
        TimelinePoint(
            phase, node, op, BASE + high * TENSOR, BASE + end * TENSOR, 0.01 * i, 0.01 * (i + 1)
        )
        for i, (phase, node, op, high, end) in enumerate(points)
    )
    return Trace(
        timeline=timeline,
        lives=_lives(len(points)),
        nodes=_nodes(fates),
        retrievals=(Retrieval(6, 8, (6,)), Retrieval(7, 8, (6, 7))),
        cut=False,
    )


def _lives(points: int) -> tuple[Life, ...]:
    """What is there from the start, and one product."""
    leaves = [
        Life(node, None, why, SHAPE, TENSOR, 0, None)
        for node, why in enumerate(("parameter", "parameter", "input"))
    ]
    return (*leaves, Life(3, "matmul", "value", SHAPE, TENSOR, 0, points - 2))


def _nodes(fates: dict[int, str]) -> tuple[NodeFate, ...]:
    ops = {3: "matmul", 4: "sigmoid", 5: "mul", 6: "matmul", 7: "sigmoid", 8: "mul"}
    parents = {3: (2, 0), 4: (3,), 5: (3, 4), 6: (5, 1), 7: (6,), 8: (6, 7)}
    leaves = [
        NodeFate(node, None, (), SHAPE, TENSOR, fate, 0, ())
        for node, fate in enumerate(("parameter", "parameter", "input"))
    ]
    inner = [
        NodeFate(node, op, parents[node], SHAPE, TENSOR, fates.get(node, "dropped"), 1, ())
        for node, op in ops.items()
    ]
    return (*leaves, *inner, NodeFate(9, "sum", (8,), (1,), 4, "output", 0, ()))


def engine_row(
    engine: str,
    strategy: str,
    reason: str | None = None,
    times_s: Iterable[tuple[float | None, float | None, float]] = (),
    **changes: Any,
) -> Row:
    """A row of another engine, without figures but for its samples: forward, backward, total."""
    counted = [
        Sample(forward_s, backward_s, whole_s=total_s if forward_s is None else None)
        for forward_s, backward_s, total_s in times_s
    ]
    row = Row(
        strategy=strategy,
        device=engine,
        reference=False,
        memory=None,
        outcome=None,
        cost=None,
        passes=Passes((), tuple(counted)),
        trace=None,
        engine=engine,
        library=engine,
        reason=reason,
    )
    return replace(row, **changes)


def compiled_row(
    strategy: str, residual_bytes: int, temp_bytes: int, asked: dict[str, int], left: dict[str, int]
) -> Row:
    """A row of JAX compiled: two weights and an input go in, a loss and two gradients come out."""
    plan = Plan(argument_bytes=BASE, output_bytes=2 * TENSOR + 4, temp_bytes=temp_bytes)
    compiled = Compiled(
        plan=plan,
        fresh_process_bytes=temp_bytes + 12 * 2**20,
        lowered_flops=3e9,
        flops=2.5e9,
        asked_by_op=asked,
        left_by_op=left,
        lower_s=0.25,
        build_s=0.75,
        first_call_s=0.2,
    )
    memory = held_alone(residual_bytes, 2, temp_bytes, compiled.peak_bytes)
    return engine_row(
        "jax",
        strategy,
        None,
        [(None, None, 0.08)] * 9,
        library="JAX 0.10.2",
        memory=replace(memory, process_peak_bytes=compiled.fresh_process_bytes),
        outcome=replace(_outcome({}), grad_sha256=None),
        agreement=Agreement(211.5, 1e-7, 1.0, 2e-7, 3.0, 1e-5),
        compile_s=1.0,
        compiled=compiled,
    )
