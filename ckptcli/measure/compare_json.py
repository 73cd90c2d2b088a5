"""A comparison as plain data: schema `ckpt.compare/1`.

SI base units, the unit in the key; `kind` says what `low` and `high` are. Records have no figure
that JSON cannot hold in what is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ckptcli.measure.compare import Change, RunComparison, StrategyComparison, processes_of
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import PHASES, Row
from ckptcli.measure.statistics import Ratio

SCHEMA = "ckpt.compare/1"
METHOD = (
    "medians of both runs resampled apart, by process where there are several, 2,000 times, seeded "
    "by the samples; percentile 95 % interval of their ratio"
)


def comparison_object(
    base_file: str, new_files: Sequence[str], comparisons: Sequence[RunComparison]
) -> dict[str, Any]:
    """One base with everything that it was compared with; at least one."""
    first = comparisons[0]
    return {
        "schema": SCHEMA,
        "method": METHOD,
        "threshold": first.threshold,
        "base": _run(base_file, first.base),
        "comparisons": [
            _comparison(file, comparison) for file, comparison in zip(new_files, comparisons)
        ],
    }


def _run(file: str, record: RunRecord) -> dict[str, Any]:
    return {
        "file": file,
        "version": record.version,
        "workload": record.workload,
        "device": record.device,
        "machine": asdict(record.machine),
        "seed": record.seed,
        "rounds": record.rounds,
        "processes": record.processes,
        "partial": record.partial,
    }


def _comparison(file: str, comparison: RunComparison) -> dict[str, Any]:
    return {
        "new": _run(file, comparison.new),
        "machine_differences": [asdict(entry) for entry in comparison.machine_differences],
        "unclear_because": list(comparison.caps),
        "notes": list(comparison.notes),
        "only_base": list(comparison.only_base),
        "only_new": list(comparison.only_new),
        "strategies": [_strategy(entry) for entry in comparison.strategies],
    }


def _strategy(entry: StrategyComparison) -> dict[str, Any]:
    return {
        "strategy": entry.strategy,
        "point": dict(entry.point),
        **{f"{phase}_s": _times(entry, phase) for phase in PHASES},
        "saved_bytes": _change(entry.saved_bytes),
        "peak_bytes": _change(entry.peak_bytes),
        "ledger_peak_bytes": _change(entry.ledger_peak_bytes),
        "recomputed_nodes": _change(entry.recomputed_nodes),
        "gradients_identical": entry.gradients_identical,
    }


def _times(entry: StrategyComparison, phase: str) -> dict[str, Any]:
    return {
        "base": _estimate(entry.base, phase),
        "new": _estimate(entry.new, phase),
        "ratio": _ratio(None if entry.ratios is None else entry.ratios.get(phase)),
    }


def _estimate(row: Row, phase: str) -> dict[str, Any] | None:
    known = row.estimate(phase)
    if known is None:
        return None
    return {
        "median": known.median,
        "low": known.low,
        "high": known.high,
        "samples": len(row.samples),
        "processes": processes_of(row),
    }


def _ratio(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {
        "median": ratio.median,
        "low": ratio.low,
        "high": ratio.high,
        "kind": "95 %" if ratio.exact else "range",
        "verdict": ratio.verdict,
    }


def _change(change: Change) -> dict[str, Any]:
    return {"base": change.base, "new": change.new, "percent": change.percent}
