"""A comparison of two saved runs as cells and sentences: screen and Markdown show these."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure.compare import Change, RunComparison, StrategyComparison
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import PHASES
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.run_table import ratio_interval, scale_of, time_text
from ckptcli.report.surroundings import heading, origin_line
from ckptcli.units import TimeScale


def run_line(name: str, record: RunRecord) -> str:
    """One of the two runs: its file, its workload, how often, when."""
    partial = ", partial" if record.partial else ""
    origin = origin_line(record)
    return (
        f"{name}: {heading(record)}; {units.count(record.rounds, 'round')} in "
        f"{units.count(record.processes, 'process')}{partial}; ckpt {record.version}"
        f"{f'; {origin}' if origin else ''}"
    )


def strategy_table(entry: StrategyComparison) -> Table:
    """One strategy: a row a figure. What goes first is what is said elsewhere: the verdict in the
    sentences below, the base in the new figure and its ratio.
    """
    columns = (
        Column(entry.label, 0, "text"),
        Column("base", 3),
        Column("new", 1),
        Column("new / base", 2, short="ratio"),
        Column("verdict", 4, "word"),
    )
    return Table(columns, list(_rows(entry)), details_from=100)


def whole_table(comparison: RunComparison) -> Table:
    """A row a strategy, where a page has room for one table: the new figure, from what it went."""
    columns = (
        Column("strategy", 0, "text"),
        *(Column(name, 1) for name in ("saved", "peak", "recomputed", "total", "new / base")),
        Column("verdict", 1, "word"),
        Column("gradients", 1, "text"),
    )
    scale = scale_of(entry.new.estimate("total") for entry in comparison.strategies)
    return Table(columns, [_row(entry, scale) for entry in comparison.strategies])


def _row(entry: StrategyComparison, scale: TimeScale | None) -> tuple[Cell, ...]:
    nodes = entry.recomputed_nodes
    return (
        Cell(entry.label),
        *(_from(change) for change in (entry.saved_bytes, entry.peak_bytes)),
        Cell(_known(nodes.new), "" if nodes.base == nodes.new else f"from {_known(nodes.base)}"),
        _split(time_text(entry.new, "total", scale)),
        *_ratio(entry, "total"),
        Cell(_gradients(entry.gradients_identical)),
    )


def _from(change: Change) -> Cell:
    """A size, and what it was if it was another."""
    if change.base == change.new:
        return Cell(units.size(change.new))
    return Cell(units.size(change.new), f"from {units.size(change.base)}, {_percent(change)}")


def _rows(entry: StrategyComparison) -> Iterator[tuple[Cell, ...]]:
    both = (entry.base, entry.new)
    scale = scale_of(row.estimate(phase) for row in both for phase in PHASES)
    for phase in PHASES:
        if not any(row.estimate(phase) for row in both):
            continue
        times = [_split(time_text(row, phase, scale)) for row in both]
        yield (Cell(phase), *times, *_ratio(entry, phase))
    for name, change in (("saved", entry.saved_bytes), ("peak", entry.peak_bytes)):
        sizes = [Cell(units.size(known)) for known in (change.base, change.new)]
        yield (Cell(name), *sizes, Cell(_percent(change)), Cell(""))
    nodes = entry.recomputed_nodes
    counts = [Cell(_known(known)) for known in (nodes.base, nodes.new)]
    yield (Cell("recomputed"), *counts, Cell(_difference(nodes)), Cell(""))
    word = _gradients(entry.gradients_identical)
    yield (Cell("gradients"), Cell(""), Cell(""), Cell(word), Cell(""))


def _split(text: str) -> Cell:
    middle, bracket, rest = text.partition(" [")
    return Cell(middle, f"[{rest}" if bracket else "")


def _ratio(entry: StrategyComparison, phase: str) -> tuple[Cell, Cell]:
    ratio = None if entry.ratios is None else entry.ratios.get(phase)
    if ratio is None:
        return Cell(units.UNKNOWN), Cell("")
    return _split(ratio_interval(ratio)), Cell(ratio.verdict)


def _percent(change: Change) -> str:
    if change.base is None or change.new is None:
        return units.UNKNOWN
    if change.base == change.new:
        return "the same"
    percent = change.percent
    return _difference(change) if percent is None else f"{percent:+.1f} %"


def _difference(change: Change) -> str:
    if change.base is None or change.new is None:
        return units.UNKNOWN
    return "the same" if change.base == change.new else f"{change.new - change.base:+d}"


def _known(number: int | None) -> str:
    return units.UNKNOWN if number is None else str(number)


def _gradients(identical: bool | None) -> str:
    if identical is None:
        return units.UNKNOWN
    return "identical" if identical else "DIFFER"


def readings(comparison: RunComparison) -> Iterator[str]:
    """The verdict on each strategy's time, and what to know before believing it."""
    has_times = any(entry.ratios is not None for entry in comparison.strategies)
    yield from _of_times(comparison) if has_times else ["no time verdict: a run has no times"]
    for name, strategies in (
        ("base", comparison.only_base),
        ("new run", comparison.only_new),
    ):
        if strategies:
            yield f"only in the {name}: {', '.join(strategies)}"
    for note in comparison.notes:
        yield f"note: {note}"
    if has_times:
        yield _method(comparison)


def _of_times(comparison: RunComparison) -> Iterator[str]:
    for entry in comparison.strategies:
        yield _verdict(entry)
    for cap in comparison.caps:
        yield f"unclear, since {cap}"
    if not comparison.caps and comparison.unclear:
        yield "where unclear: more --processes or --reps in both runs narrow the interval"


def _verdict(entry: StrategyComparison) -> str:
    if entry.ratios is None:
        return f"{entry.label}: no time verdict: a run has no complete round"
    ratio = entry.ratios["total"]
    kind = "95 %" if ratio.exact else "range"
    return (
        f"{entry.label}: {ratio.verdict}: the new run takes {units.ratio(ratio.median)} the "
        f"time [{ratio.low:.3f} {ratio.high:.3f}, {kind}]"
    )


def _method(comparison: RunComparison) -> str:
    return (
        "method: medians of both runs resampled apart, by process where there are several, 2,000 "
        "times; percentile 95 % interval of their ratio; within "
        f"{comparison.threshold * 100:g} % is `same`; verdicts corrected for "
        f"{units.count(comparison.comparisons, 'comparison')}"
    )
