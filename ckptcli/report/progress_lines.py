"""The lines of the experiment that this program began with, in its wording: scripts read them.

For each row its device and what is in use, then a line a pass, then the medians. A run prints them
when it is over, and tells the same lines as they come while it measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ckptcli import units
from ckptcli.measure import OURS
from ckptcli.measure.memory import Memory
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Sample
from ckptcli.measure.row import PHASES, Identity, Row

Shown = Mapping[Identity, int]
"""How many passes of a row were told of; one that is not in it is new."""


def row_lines(row: Row, record: RunRecord, verbose: bool) -> Iterator[str]:
    """All of a row: nothing where there is nothing to tell."""
    if row.memory is None:
        return
    yield from _head(row, record)
    if verbose:
        for rep, sample in enumerate(_passes(row)):
            yield rep_line(rep, sample, row.memory)
    yield from _medians(row)


def new_lines(record: RunRecord, shown: Shown, verbose: bool) -> tuple[list[str], Shown]:
    """What a record has beyond what was told, and what has been told then.

    Passes of several rows take turns, so each line has the row's name before it.
    """
    lines: list[str] = []
    told = dict(shown)
    for row in record.rows:
        if row.memory is None:
            continue
        if row.identity not in told:
            lines += _head(row, record)
        first, passes = told.get(row.identity, 0), _passes(row)
        if verbose:
            lines += [
                f"{record.label(row)}: {rep_line(rep, passes[rep], row.memory)}"
                for rep in range(first, len(passes))
            ]
        told[row.identity] = max(first, len(passes))
    return lines, told


def rep_line(rep: int, sample: Sample, memory: Memory) -> str:
    """One pass; of a library that makes one program of both phases, their time together."""
    check = "" if sample.check is None else f", sum(grad w0) = {sample.check:.4f}"
    if sample.forward_s is None:
        return f"rep {rep}: forward + backward {units.duration(sample.total_s):>8}{check}"
    return (
        f"rep {rep}: after forward in_use = {_in_use(memory.after_forward_bytes)}, "
        f"forward {units.duration(sample.forward_s):>8}, "
        f"backward {units.duration(sample.backward_s):>8}{_step(sample.step_s)}{check}"
    )


def _step(step_s: float | None) -> str:
    """The optimizer's step, where there is one."""
    return "" if step_s is None else f", step {units.duration(step_s):>8}"


def _passes(row: Row) -> list[Sample]:
    return [*row.passes.warmup, *row.samples]


def _head(row: Row, record: RunRecord) -> Iterator[str]:
    assert row.memory is not None
    # ckpt's own devices name how they checkpoint.
    strategy = "" if row.engine == OURS else f", strategy = {row.strategy}"
    yield f"device = {row.device}, {record.title_of(row)}{strategy}"
    for name, size_bytes in (
        ("params + input", row.memory.params_input_bytes),
        ("after forward", row.memory.after_forward_bytes),
    ):
        if size_bytes is not None:
            yield f"{name:<23} in_use = {_in_use(size_bytes)}"


def _medians(row: Row) -> Iterator[str]:
    first = len(row.passes.warmup)
    last = first + len(row.samples) - 1
    if last < first:
        return
    forward, backward, step, total = (row.median_s(phase) for phase in PHASES)
    if forward is not None:
        yield (
            f"reps {first}..{last}: median forward {units.duration(forward)}, "
            f"median backward {units.duration(backward)}{_step(step)}"
        )
    elif total is not None:
        yield f"reps {first}..{last}: median forward + backward {units.duration(total)}"


def _in_use(size_bytes: int | None) -> str:
    return f"{units.size(size_bytes):>11}"
