"""A sweep as JSON, schema `ckpt.sweep/1`: each point with the figures of its rows.

Samples and passes stay in the records of the points, which a folder has whole.
"""

from __future__ import annotations

from typing import Any

from ckptcli.measure.row import Row
from ckptcli.sweep.result import PointResult, SweepResult
from ckptcli.version import VERSION

SCHEMA = "ckpt.sweep/1"


def sweep_object(sweep: SweepResult) -> dict[str, Any]:
    """The sweep as plain data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": sweep.title,
        "axes": list(sweep.axes),
        "strategies": sweep.names,
        "points": [_point(point) for point in sweep.points],
    }


def _point(point: PointResult) -> dict[str, Any]:
    return {
        "key": point.key,
        "point": dict(point.point),
        "status": point.status,
        "reason": point.reason,
        "host": point.host,
        "device": None if point.record is None else point.record.device,
        "rows": [figures(name, row) for name, row in point.rows().items()],
        "missing": [{"strategy": name, "reason": why} for name, why in point.missing().items()],
    }


def figures(name: str, row: Row) -> dict[str, Any]:
    """What a table has of a row, SI base units; None is not known."""
    memory, time, ratio = row.memory, row.estimate("total"), (row.ratios or {}).get("total")
    return {
        "strategy": name,
        "saved_bytes": row.saved_bytes,
        "peak_bytes": row.peak_bytes,
        "ledger_peak_bytes": None if memory is None else memory.ledger_peak_bytes,
        "workspace_bytes": None if memory is None else memory.workspace_bytes,
        "gradient": None if row.outcome is None else row.outcome.gradient,
        "recomputed_nodes": row.recomputed_nodes,
        "total_s": None if time is None else time.median,
        "total_low_s": None if time is None else time.low,
        "total_high_s": None if time is None else time.high,
        "ratio": None if ratio is None else ratio.median,
        "verdict": None if ratio is None else ratio.verdict,
        "grad_sha256": None if row.outcome is None else row.outcome.grad_sha256,
    }
