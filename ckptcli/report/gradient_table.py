"""The table of a program with one number to differentiate by: gradients beside memory and time.

Shown for records whose strategies have a `gradient`; the experiment of the second seed document.
"""

from __future__ import annotations

from rich.table import Table

from ckptcli import units
from ckptcli.measure.record import Outcome, RunRecord, StrategyRecord

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
    for strategy in record.strategies:
        table.add_row(*_row(strategy))
    return table


def _first_outcome(record: RunRecord) -> Outcome | None:
    outcome = record.strategies[0].outcome if record.strategies else None
    return None if outcome is None or outcome.gradient is None else outcome


def _row(record: StrategyRecord) -> tuple[str, ...]:
    outcome, memory = record.outcome, record.memory
    gradient = outcome.gradient
    exact = None if outcome.exact is None else outcome.exact[1]
    return (
        record.strategy,
        units.UNKNOWN if gradient is None else f"{gradient:.{DIGITS}f}",
        _distance(gradient, exact, "+.1e"),
        _distance(gradient, outcome.finite_difference, ".1e").lstrip("-"),
        f"{memory.saved_bytes} B",
        units.size(memory.ledger_peak_bytes),
        units.duration(record.median_s("total")),
    )


def _distance(value: float | None, other: float | None, form: str) -> str:
    return units.UNKNOWN if value is None or other is None else f"{value - other:{form}}"
