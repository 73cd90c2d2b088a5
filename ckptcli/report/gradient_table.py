"""The table of a program with one number to differentiate by: gradients beside memory and time.

Made for records whose rows have a `gradient`; the experiment of the second seed document.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli import units
from ckptcli.measure.point import point_text
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Outcome, Row
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.run_table import gradients_word, point_cells, point_columns

DIGITS = 15
"""Of a float64, one more than is sure."""

COLUMNS = (
    Column("strategy", 0, "text"),
    Column("gradient", 1),
    Column("error", 2),
    Column("|grad - fd|", 4),
    Column("|grad - none|", 5),
    Column("saved", 6),
    Column("peak", 7),
    Column("total", 8),
    Column("gradient is", 3, "word"),
)

EXPLANATION = (
    "Error: the gradient less the exact one. |grad - fd|: its distance from the finite difference. "
    "|grad - none|: its distance from that of the same engine without a checkpoint. The last "
    "column is the verdict on the gradient alone: of another engine whether it agrees with ckpt's "
    "within the row's tolerance, of ckpt's own whether every bit is the reference's, and of the "
    "reference whether it agrees with the finite difference."
)

AGREES = 1e-6
"""A gradient this near to the finite difference, as a share, agrees with it: `ckpt check`'s."""


def gradient_lines(record: RunRecord) -> list[str]:
    """The loss, and what theory and a finite difference say, of each program; empty without
    gradients.
    """
    return [line for rows in _by_program(record) for line in _lines(rows, record)]


def _by_program(record: RunRecord) -> list[list[Row]]:
    """The rows of each program, in the order of the record."""
    rows: dict[tuple[object, ...], list[Row]] = {}
    for row in record.rows:
        rows.setdefault(tuple(row.point.items()), []).append(row)
    return list(rows.values())


def _lines(rows: Sequence[Row], record: RunRecord) -> list[str]:
    outcome = _first_outcome(rows)
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
    if not rows[0].point:
        return lines
    return [f"{point_text(rows[0].point)}: {', '.join(lines)}"]


def gradient_table(record: RunRecord) -> Table | None:
    """A row a strategy: gradient, error, distance from the difference, bytes kept, peak, time.

    None for a program without one number to differentiate by.
    """
    if _first_outcome(record.rows) is None:
        return None
    scale = units.time_scale(row.median_s("total") for row in record.rows)
    return Table(
        [*point_columns(record), *COLUMNS],
        [
            [*point_cells(row, record), *_cells(row, _first_outcome(rows), record, scale)]
            for rows in _by_program(record)
            for row in rows
        ],
    )


def _first_outcome(rows: Sequence[Row]) -> Outcome | None:
    outcomes = (row.outcome for row in rows)
    return next((o for o in outcomes if o is not None and o.gradient is not None), None)


def _cells(
    row: Row, evidence: Outcome | None, record: RunRecord, scale: units.TimeScale | None
) -> tuple[Cell, ...]:
    gradient = None if row.outcome is None else row.outcome.gradient
    exact = None if evidence is None or evidence.exact is None else evidence.exact[1]
    difference = None if evidence is None else evidence.finite_difference
    texts = (
        record.name_of(row),
        units.UNKNOWN if gradient is None else f"{gradient:.{DIGITS}f}",
        _distance(gradient, exact, "+.1e"),
        _distance(gradient, difference, ".1e").lstrip("-"),
        _distance(gradient, _plain_gradient(row, record), ".1e").lstrip("-"),
        units.UNKNOWN if row.saved_bytes is None else f"{row.saved_bytes} B",
        units.size(row.peak_bytes),
        units.duration(row.median_s("total"), scale),
        gradient_verdict(row, record),
    )
    return tuple(map(Cell, texts))


def _distance(value: float | None, other: float | None, form: str) -> str:
    return units.UNKNOWN if value is None or other is None else f"{value - other:{form}}"


def _plain_gradient(row: Row, record: RunRecord) -> float | None:
    """The gradient of the same engine without a checkpoint; None for that row itself."""
    base = record.base_of(row)
    if base is None or base.engine != row.engine or base.outcome is None:
        return None
    return base.outcome.gradient


def gradient_verdict(row: Row, record: RunRecord) -> str:
    """`wrong`, `agrees`, `identical`; `differs` where the finite difference denies a reference."""
    outcome = row.outcome
    if outcome is None or outcome.gradient is None:
        return units.UNKNOWN
    if row.is_wrong:
        return "wrong"
    if row.agreement is not None:
        return "agrees"
    base = record.base_of(row)
    if base is not None:
        return gradients_word(row, base)
    difference = outcome.finite_difference
    if difference is None:
        return units.UNKNOWN
    apart = abs(outcome.gradient - difference)
    return "agrees" if apart <= AGREES * abs(difference) else "differs"
