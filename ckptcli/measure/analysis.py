"""From measured samples to figures: estimates, ratios, and one word on each row.

A record is analysed once, when it is made or read back; reports compute nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ckptcli.measure import OURS
from ckptcli.measure.judge import judge
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import PHASES, Row
from ckptcli.measure.statistics import Estimate, Ratio, estimate, paired_ratio


def analysed(record: RunRecord) -> RunRecord:
    """The record with every derived figure filled in."""
    return replace(record, rows=tuple(_analysed(row, record) for row in record.rows))


def _analysed(row: Row, record: RunRecord) -> Row:
    base, reference, beside_row = record.base_of(row), record.reference_of(row), record.beside(row)
    own = next((r for r in beside_row if r.key == (OURS, row.strategy) and r is not row), None)
    ratios = None if row is reference else _ratios(row, reference, record)
    beside = None if base is reference else _ratios(row, base, record)
    return replace(
        row,
        times=_times(row),
        ratios=ratios or None,
        engine_ratios=beside or None,
        own_ratio=None if own is None else _ratios(row, own, record).get("total"),
        judgement=None if base is None else judge(row, base, record),
    )


def _times(row: Row) -> dict[str, Estimate] | None:
    return {p: estimate(seconds) for p in PHASES if (seconds := row.seconds(p))} or None


def _ratios(row: Row, base: Row | None, record: RunRecord) -> dict[str, Ratio]:
    """For each phase that both time apart; corrected for how many are compared at all points."""
    if base is None:
        return {}
    pairs = {phase: (row.seconds(phase), base.seconds(phase)) for phase in PHASES}
    points = {tuple(other.point.items()) for other in record.rows if other.reason is None}
    others = sum(other.reason is None for other in record.rows) - len(points)
    return {
        phase: paired_ratio(own_s, base_s, threshold=record.threshold, comparisons=max(1, others))
        for phase, (own_s, base_s) in pairs.items()
        if own_s and base_s
    }
