"""A sweep as JSON, schema `ckpt.sweep/1`: each point with the figures of its rows.

Samples and passes stay in the records of the points, which a folder has whole.
"""

from __future__ import annotations

from typing import Any

from ckptcli.measure.row import Row
from ckptcli.sweep.laws.of_sweep import ByteLaw, Crossover, Laws, TimeLaw
from ckptcli.sweep.result import PointResult, SweepResult
from ckptcli.version import VERSION

SCHEMA = "ckpt.sweep/1"


def sweep_object(sweep: SweepResult, laws: Laws) -> dict[str, Any]:
    """The sweep and its laws as plain data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": sweep.title,
        "axes": list(sweep.axes),
        "strategies": sweep.names,
        "points": [_point(point) for point in sweep.points],
        "laws": [_byte_law(law) for law in laws.of_bytes],
        "time_laws": [_time_law(law) for law in laws.of_times],
        "crossovers": [_crossover(found) for found in laws.crossovers],
    }


def _byte_law(law: ByteLaw) -> dict[str, Any]:
    found = law.found
    terms = {} if found is None else found.polynomial.terms
    return {
        "strategy": law.strategy,
        "metric": law.metric,
        "where": list(law.where),
        "is_polynomial": found is not None,
        "terms": [
            {"coefficient": str(c), "exponents": {n: e for n, e in zip(law.names, exponents) if e}}
            for exponents, c in terms.items()
        ],
        "made_of": None if found is None else found.made_of,
        "held_at": None if found is None else found.held_at,
    }


def _time_law(law: TimeLaw) -> dict[str, Any]:
    return {
        "strategy": law.strategy,
        "where": list(law.where),
        "factor_s": law.law.factor_s,
        "exponents": dict(zip(law.law.names, law.law.exponents)),
        "intervals": {n: list(ends) for n, ends in zip(law.law.names, law.law.intervals)},
        "largest_residual": law.law.largest_residual,
        "is_told": law.law.is_told,
    }


def _crossover(found: Crossover) -> dict[str, Any]:
    return {
        "slower_above": found.slower_above,
        "other": found.other,
        "where": list(found.where),
        "name": found.name,
        "value": found.value,
        "extrapolated": found.is_extrapolated,
    }


def _point(point: PointResult) -> dict[str, Any]:
    return {
        "key": point.key,
        "point": dict(point.point),
        "status": point.status,
        "reason": point.reason,
        "host": point.host,
        "machine": point.machine,
        "device": None if point.record is None else point.record.device,
        "load_average": point.load_average,
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
