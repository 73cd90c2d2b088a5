"""A run as one JSON object, schema `ckpt.run/1`.

SI base units, the unit in the key. Totals include parameters and input. JSON has no number for
infinity or nan: such a figure is null, and a warning names it.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ckptcli.measure.record import SCHEMA, Memory, PeakLive, RunRecord, StrategyRecord
from ckptcli.measure.rounds import Sample


def run_json(record: RunRecord) -> str:
    """The record as indented JSON text that ends in a newline."""
    return json.dumps(run_object(record), indent=2, allow_nan=False) + "\n"


def run_object(record: RunRecord) -> dict[str, Any]:
    """The record as plain data, every number finite."""
    whole = {
        "schema": SCHEMA,
        "version": record.version,
        "workload": {**record.workload, "title": record.title},
        "device": record.backend,
        "machine": asdict(record.machine),
        "seed": record.seed,
        "reps": record.reps,
        "partial": record.partial,
        "warnings": [],
        "strategies": [_strategy(strategy) for strategy in record.strategies],
    }
    warnings = list(record.warnings)
    finite: dict[str, Any] = _finite(whole, "", warnings)
    return {**finite, "warnings": warnings}


def _strategy(record: StrategyRecord) -> dict[str, Any]:
    return {
        "strategy": record.strategy,
        "device": record.device,
        "reference": record.reference,
        **_memory(record.memory),
        "recomputed_nodes": record.outcome.recomputed_nodes,
        "recomputed_by_op": record.outcome.recomputed_by_op,
        "loss": record.outcome.loss,
        "grad_sum_w0": record.outcome.grad_sum_w0,
        "grad_sha256": record.outcome.grad_sha256,
        "forward_s": _times(record, lambda sample: sample.forward_s),
        "backward_s": _times(record, lambda sample: sample.backward_s),
        "total_s": _times(record, lambda sample: sample.total_s),
    }


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        "params_input_bytes": memory.params_input_bytes,
        "after_forward_bytes": memory.after_forward_bytes,
        "saved_bytes": memory.saved_bytes,
        "saved_tensors": memory.saved_tensors,
        "peak_forward_bytes": memory.peak_forward_bytes,
        "peak_backward_bytes": memory.peak_backward_bytes,
        "ledger_peak_forward_bytes": memory.ledger_peak_forward_bytes,
        "ledger_peak_backward_bytes": memory.ledger_peak_backward_bytes,
        "traced_peak_forward_bytes": memory.traced_peak_forward_bytes,
        "traced_peak_backward_bytes": memory.traced_peak_backward_bytes,
        "peak_live": _peak_live(memory.peak_live),
        "after_backward_bytes": memory.after_backward_bytes,
    }


def _peak_live(peak: PeakLive) -> dict[str, Any]:
    return {
        "largest": [{**asdict(tensor), "shape": list(tensor.shape)} for tensor in peak.largest],
        "total_bytes": peak.total_bytes,
        "total_tensors": peak.total_tensors,
        "bytes_by_why": peak.bytes_by_why,
    }


def _times(record: StrategyRecord, phase_s: Callable[[Sample], float]) -> dict[str, Any]:
    samples = [phase_s(sample) for sample in record.samples]
    return {
        "median": statistics.median(samples) if samples else None,
        "samples": samples,
        "warmup": [phase_s(sample) for sample in record.warmup],
    }


def _finite(value: Any, path: str, warnings: list[str]) -> Any:
    """`value` with null for each number that JSON cannot hold; `warnings` learns where."""
    if isinstance(value, dict):
        return {key: _finite(item, f"{path}.{key}", warnings) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item, f"{path}[{i}]", warnings) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        warnings.append(f"{path.lstrip('.')} is {value}, printed as null")
        return None
    return value
