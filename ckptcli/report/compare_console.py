"""A comparison of two saved runs for the eye: one table a strategy, then what to think of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ckptcli import units
from ckptcli.measure.compare import Change, RunComparison, StrategyComparison
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import PHASES, Row
from ckptcli.report.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

NARROW = 100
"""Under this many columns a median is shown without its interval."""


def render_comparison(
    comparison: RunComparison, screen: Screen, *, base_name: str, new_name: str
) -> str:
    """The whole screen, ready to print; the names are those of the files."""
    parts: list[str | Table] = [
        _wrapped(f"base: {_run_line(base_name, comparison.base)}", screen),
        _wrapped(f"new:  {_run_line(new_name, comparison.new)}", screen),
    ]
    parts += [_table(entry, screen) for entry in comparison.strategies]
    parts += [_wrapped(line, screen) for line in _readings(comparison)]
    return screen.render(*parts)


def _wrapped(line: str, screen: Screen) -> str:
    return textwrap.fill(
        line,
        screen.width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _run_line(name: str, record: RunRecord) -> str:
    partial = ", partial" if record.partial else ""
    return (
        f"{name}: {record.title}; {_count(record.rounds, 'round')} in "
        f"{_count(record.processes, 'process')}{partial}; ckpt {record.version}"
    )


def _table(entry: StrategyComparison, screen: Screen) -> Table:
    table = screen.table()
    table.add_column(entry.strategy, overflow="fold")
    for name in ("base", "new", "new / base"):
        table.add_column(name, justify="right")
    for phase in PHASES:
        base, new = (_time(record, phase, screen) for record in (entry.base, entry.new))
        table.add_row(phase, base, new, _ratio(entry, phase))
    for name, change in (("saved", entry.saved_bytes), ("peak", entry.peak_bytes)):
        table.add_row(name, units.size(change.base), units.size(change.new), _percent(change))
    nodes = entry.recomputed_nodes
    table.add_row("recomputed", _known(nodes.base), _known(nodes.new), _difference(nodes))
    table.add_row("gradients", "", "", _gradients(entry.gradients_identical))
    return table


def _time(row: Row, phase: str, screen: Screen) -> str:
    times = row.estimate(phase)
    if times is None:
        return units.UNKNOWN
    if screen.width < NARROW:
        return units.duration(times.median)
    return units.interval(times.median, times.low, times.high)


def _ratio(entry: StrategyComparison, phase: str) -> str:
    ratio = None if entry.ratios is None else entry.ratios.get(phase)
    if ratio is None:
        return units.UNKNOWN
    kind = "" if ratio.exact else " range"
    return f"{units.ratio(ratio.median)} [{ratio.low:.3f} {ratio.high:.3f}]{kind} {ratio.verdict}"


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


def _readings(comparison: RunComparison) -> Iterator[str]:
    """The verdict on each strategy's time, and what to know before believing it."""
    for entry in comparison.strategies:
        if entry.ratios is None:
            yield f"{entry.strategy}: no time verdict: a run has no complete round"
            continue
        ratio = entry.ratios["total"]
        kind = "95 %" if ratio.exact else "range"
        yield (
            f"{entry.strategy}: {ratio.verdict}: the new run takes {units.ratio(ratio.median)} the "
            f"time [{ratio.low:.3f} {ratio.high:.3f}, {kind}]"
        )
    for cap in comparison.caps:
        yield f"unclear, since {cap}"
    if not comparison.caps and comparison.unclear:
        yield "where unclear: more --processes or --reps in both runs narrow the interval"
    for name, strategies in (
        ("base", comparison.only_base),
        ("new run", comparison.only_new),
    ):
        if strategies:
            yield f"only in the {name}: {', '.join(strategies)}"
    for note in comparison.notes:
        yield f"note: {note}"
    yield _method(comparison)


def _method(comparison: RunComparison) -> str:
    count = _count(comparison.comparisons, "comparison")
    return (
        "method: medians of both runs resampled apart, by process where there are several, 2,000 "
        "times; percentile 95 % interval of their ratio; within "
        f"{comparison.threshold * 100:g} % is `same`; verdicts corrected for {count}"
    )


def _count(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"
