"""The comparison as text: the cells of one table, a row of the record a row.

Screen, Markdown and page show these cells (`ckptcli.report.cells`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from ckptcli import units
from ckptcli.measure import OURS, REPLAY
from ckptcli.measure.memory import Memory
from ckptcli.measure.point import shown_name, shown_value
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import PHASES, Row
from ckptcli.measure.statistics import Estimate, Ratio
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import Kind, takes
from ckptcli.options.listing import options_of
from ckptcli.options.subjects import SUBJECTS, WORKLOAD
from ckptcli.options.words import reproduction_words
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.units import TimeScale

STEP = Column("step", 10)
"""Of what is trained with an optimizer."""

COLUMNS = (
    Column("strategy", 0, "text"),
    Column("saved", 2),
    Column("peak", 1),
    Column("recomputed", 7),
    Column("forward", 8),
    Column("backward", 9),
    STEP,
    Column("total", 3),
    Column("vs reference", 4, short="vs ref"),
    Column("time", 6, "word"),
    Column("verdict", 5, "word"),
)

_EXPLANATION = (
    "Saved: what the forward pass holds for the backward pass. Peak: the most that was live at "
    "once, parameters and input included, and the workspace of kernels where it is known; of a "
    "program that is compiled whole, what its compiler planned. "
    "Recomputed: nodes computed a "
    "second time, and their share of the forward's floating-point operations and of the bytes that "
    "it moves. Times: medians"
)

REFERENCE = "reference"


def explanation(record: RunRecord) -> str:
    """What the columns mean."""
    if has_intervals(record):
        return f"{_EXPLANATION} with exact 95 % intervals."
    return f"{_EXPLANATION}; of so few rounds there is no interval, and a ratio has its range."


def has_intervals(record: RunRecord) -> bool:
    """Whether there are enough rounds for an exact interval of a median."""
    return any(known.low is not None for row in record.rows if (known := row.estimate("total")))


def table(record: RunRecord) -> Table:
    """For each row of the record, where it stands and a cell for each of `COLUMNS`."""
    scales = {phase: scale_of(row.estimate(phase) for row in record.rows) for phase in PHASES}
    whole = [dict(zip(COLUMNS, _cells(row, record, scales))) for row in record.rows]
    has_step = any(row.estimate("step") for row in record.rows)
    columns = [column for column in COLUMNS if has_step or column is not STEP]
    return Table(
        [*point_columns(record), *columns],
        [
            [*point_cells(row, record), *(cells[column] for column in columns)]
            for row, cells in zip(record.rows, whole)
        ],
    )


def point_columns(record: RunRecord) -> list[Column]:
    """A column for each option that has several values."""
    return [Column(shown_name(name), 0) for name in record.varying]


def point_cells(row: Row, record: RunRecord) -> list[Cell]:
    """The values of a row in these columns."""
    known = ((name, row.point.get(name)) for name in record.varying)
    return [Cell(units.UNKNOWN if value is None else shown_value(value)) for _, value in known]


def _cells(row: Row, record: RunRecord, scales: Mapping[str, TimeScale | None]) -> tuple[Cell, ...]:
    return (
        Cell(record.name_of(row)),
        _saved(row.memory),
        _peak(row.memory),
        _recomputed(row),
        *(_split(time_text(row, phase, scale)) for phase, scale in scales.items()),
        _split(ratio_text(row, record)),
        Cell(time_verdict(row, record)),
        Cell(verdict(row, record)),
    )


def _saved(memory: Memory | None) -> Cell:
    if memory is None:
        return Cell(units.UNKNOWN)
    return Cell(units.size(memory.saved_bytes), units.count(memory.saved_tensors, "tensor"))


def _peak(memory: Memory | None) -> Cell:
    if memory is None or not memory.workspace_bytes:
        return Cell(units.size(None if memory is None else memory.peak_bytes))
    return Cell(
        units.size(memory.peak_bytes), f"{units.size(memory.workspace_bytes)} of it workspace"
    )


def _recomputed(row: Row) -> Cell:
    count, cost = row.recomputed_nodes, row.cost
    if count is None:
        return Cell(units.UNKNOWN)
    if cost is None:
        return Cell(str(count), by_op(row) if count else "")
    shares = (
        f"{units.percent(cost.recomputed_flops_share, 1)} of operations, "
        f"{units.percent(cost.recomputed_moved_bytes_share, 0)} of bytes"
    )
    return Cell(str(count), shares if count else "")


def by_op(row: Row) -> str:
    """What is computed again, `7 mul, 8 sigmoid`; `nothing`, or `n/a`."""
    known = None if row.outcome is None else row.outcome.recomputed_by_op
    if known is None:
        return units.UNKNOWN
    return ", ".join(f"{n} {op}" for op, n in known.items()) or "nothing"


def _split(text: str) -> Cell:
    """The interval in small print, where it is known."""
    middle, bracket, rest = text.partition(" [")
    known = bracket and rest != f"{units.UNKNOWN}]"
    return Cell(middle, f"[{rest}" if known else "")


def scale_of(estimates: Iterable[Estimate | None]) -> TimeScale | None:
    """What medians that stand together have in common, and the intervals with them."""
    known = [estimate for estimate in estimates if estimate is not None]
    widths = [(e.high - e.low) / 2.0 for e in known if e.low is not None and e.high is not None]
    return units.time_scale((estimate.median for estimate in known), widths)


def time_text(row: Row, phase: str, scale: TimeScale | None = None) -> str:
    """A median with its interval, or `n/a`; in the scale of what it stands with."""
    known = row.estimate(phase)
    if known is None:
        return units.UNKNOWN
    return units.interval(known.median, known.low, known.high, scale)


def ratio_text(row: Row, record: RunRecord) -> str:
    """The ratio of the total times with its interval, or range under six rounds; or `n/a`."""
    if row is record.reference_of(row):
        return "1.00x" if row.estimate("total") else units.UNKNOWN
    return ratio_interval(total_ratio(row))


def total_ratio(row: Row) -> Ratio | None:
    """The ratio of the total times to the reference's; None where there is none."""
    return None if row.ratios is None else row.ratios.get("total")


def ratio_interval(ratio: Ratio | None) -> str:
    """A ratio with its interval, or range under six rounds; or `n/a`."""
    if ratio is None:
        return units.UNKNOWN
    kind = "" if ratio.exact else ", range"
    return f"{units.ratio(ratio.median)} [{ratio.low:.3f} {ratio.high:.3f}{kind}]"


def time_verdict(row: Row, record: RunRecord) -> str:
    """`reference`, the word on the time, or `n/a`."""
    if row is record.reference_of(row):
        return REFERENCE
    ratio = total_ratio(row)
    return units.UNKNOWN if ratio is None else ratio.verdict


def verdict(row: Row, record: RunRecord) -> str:
    """`reference`, the word on the strategy, of another engine's `none` whether it agrees."""
    if row is record.reference_of(row):
        return REFERENCE
    if row.is_wrong:
        return "wrong"
    if row.judgement is not None:
        return row.judgement.word
    return units.UNKNOWN if row.agreement is None else "agrees"


def gradients_word(row: Row, base: Row) -> str:
    """How the gradients compare with those of what the row is held against."""
    own, other = row.outcome, base.outcome
    if row.agreement is not None:
        known = row.agreement
        if known.agrees and known.gradient_relative == 0.0:
            return "identical"
        return f"within {known.gradient_relative:.2g}" if known.agrees else "DIFFER"
    if own is None or other is None or None in (own.grad_sha256, other.grad_sha256):
        return units.UNKNOWN
    if own.grad_sha256 == other.grad_sha256:
        return "identical"
    return "within run-to-run spread" if own.grad_within_spread else "DIFFER"


def command_line(record: RunRecord, reps: int | None = None) -> str | None:
    """The command that measures the same again, as often as before or `reps` times.

    None where the record does not say how.
    """
    workload = record.config.get("workload_text", record.workload.get("name"))
    is_at_hand = "module" in record.workload and "module_text" not in record.config
    if not isinstance(workload, str) or workload == "graph" or is_at_hand:
        return None
    from_file = ":" in workload  # which says the rest, but for what the command was given
    options = options_of(RunOptions)
    settings = {name: value for name, value in record.config.items() if value is not None}
    values = {
        option.name: settings[option.name]
        for option in options
        if option.name in settings and not option.by_workload
    }
    sizes = {
        option.name: record.workload[option.name]
        for option in options
        if option.by_workload and option.name in record.workload
        if not from_file or settings.get(option.name) == record.workload[option.name]
    }
    sizes |= {name: settings[name] for name in record.varying if name in settings}
    engines = [
        e for e in dict.fromkeys(row.engine for row in record.rows) if e not in (OURS, REPLAY)
    ]
    measured = {
        "strategy_texts": list(dict.fromkeys(row.strategy for row in record.rows)),
        "engine_names": engines,
        "workload_text": workload,
        "seed": record.seed,
        "reps": reps or max([1, *(len(row.samples) for row in record.rows)]),
    }
    if settings.get("memory_only"):
        del measured["reps"]
    name = record.workload.get("name")
    kind = Kind(
        name if name in SUBJECTS else WORKLOAD, record.title, frozenset(sizes), frozenset(engines)
    )
    named = [option for option in options if takes(kind, option)]
    words = reproduction_words(named, {**values, **sizes, **measured})
    return shlex.join(["ckpt", "run", *words])
