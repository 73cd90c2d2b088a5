"""The table of a program with one number to differentiate by: gradients beside memory and time.

Shown for records whose rows have a `gradient`; the experiment of the second seed document.
"""

from __future__ import annotations

from rich.table import Table

from ckptcli import units
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Outcome, Row

DIGITS = 15
"""Of a float64, one more than is sure."""


def gradient_lines(record: RunRecord) -> list[str]:
    """The loss, and what theory and a finite difference say; empty without gradients."""
    outcome = _first_outcome(record)
    if outcome is None:
        return []
    name = record.workload.get("loss_name", "loss")
    lines = [f"{name} = {outcome.loss:.{DIGITS}f}"]
    if outcome.exact is not None:
        loss, gradient = outcome.exact
        lines[0] += f", exact {loss:.{DIGITS}f}, error {outcome.loss - loss:+.1e}"
        lines.append(f"exact gradient = {gradient:.{DIGITS}f}")
    if outcome.finite_difference is not None:
        lines.append(f"finite difference = {outcome.finite_difference:.{DIGITS}f}")
    return lines


def fill_gradient_table(table: Table, record: RunRecord) -> Table:
    """A row a strategy: gradient, error, distance from the difference, bytes kept, peak, time."""
    table.add_column("strategy", overflow="fold")
    for name in ("gradient", "error", "|grad - fd|", "saved", "peak", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in record.rows:
        table.add_row(*_cells(row, record))
    return table


def _first_outcome(record: RunRecord) -> Outcome | None:
    outcome = record.rows[0].outcome if record.rows else None
    return None if outcome is None or outcome.gradient is None else outcome


def _cells(row: Row, record: RunRecord) -> tuple[str, ...]:
    gradient = None if row.outcome is None else row.outcome.gradient
    evidence = _first_outcome(record)
    exact = None if evidence is None or evidence.exact is None else evidence.exact[1]
    difference = None if evidence is None else evidence.finite_difference
    return (
        record.label(row),
        units.UNKNOWN if gradient is None else f"{gradient:.{DIGITS}f}",
        _distance(gradient, exact, "+.1e"),
        _distance(gradient, difference, ".1e").lstrip("-"),
        units.UNKNOWN if row.saved_bytes is None else f"{row.saved_bytes} B",
        units.size(row.peak_bytes),
        units.duration(row.median_s("total")),
    )


def _distance(value: float | None, other: float | None, form: str) -> str:
    return units.UNKNOWN if value is None or other is None else f"{value - other:{form}}"
