"""A run as plain data and back: schema `ckpt.run/1`.

SI base units, the unit in the key. JSON has no number for infinity or nan: such a figure is null,
and a warning names it. What is derived (medians, ratios, verdicts) is written for readers and
computed anew when a file is read.

Invariant: reading what was written gives the same record, but for figures that were not finite. A
key that was added to version 1 has a default in its class, which older files get.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from ckptcli.errors import RecordFileError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.machine import Machine
from ckptcli.measure.peer_json import filled, peer_object, read_peer
from ckptcli.measure.record import (
    PHASES,
    SCHEMA,
    AllocatorPeak,
    Cost,
    Failure,
    Life,
    LiveTensor,
    Memory,
    NodeFate,
    Outcome,
    PeakLive,
    Retrieval,
    RunRecord,
    StrategyRecord,
    TimelinePoint,
    Trace,
)
from ckptcli.measure.rounds import Sample

FAMILY, _, NEWEST = SCHEMA.partition("/")

Data = TypeVar("Data")


def record_json(record: RunRecord) -> str:
    """The record as indented JSON text that ends in a newline."""
    return json.dumps(record_object(record), indent=2, allow_nan=False) + "\n"


def record_object(record: RunRecord) -> dict[str, Any]:
    """The record as plain data, every number finite."""
    whole = {
        "schema": SCHEMA,
        "version": record.version,
        "workload": {**record.workload, "title": record.title},
        "device": record.backend,
        "library": record.library,
        "machine": asdict(record.machine),
        "seed": record.seed,
        "rounds": record.rounds,
        "processes": record.processes,
        "threshold": record.threshold,
        "stopped": record.stopped,
        "partial": record.partial,
        "config": record.config,
        "warnings": [],
        "failures": [asdict(failure) for failure in record.failures],
        "strategies": [_strategy_object(strategy) for strategy in record.strategies],
        "peers": [peer_object(peer) for peer in record.peers],
    }
    warnings = list(record.warnings)
    finite: dict[str, Any] = with_finite_numbers(whole, "", warnings)
    return {**finite, "warnings": warnings}


def _strategy_object(record: StrategyRecord) -> dict[str, Any]:
    memory, outcome, cost = record.memory, record.outcome, record.cost
    return {
        "strategy": record.strategy,
        "device": record.device,
        "reference": record.reference,
        "judgement": None if record.judgement is None else asdict(record.judgement),
        **asdict(memory),
        "peak_forward_bytes": memory.peak_forward_bytes,
        "peak_backward_bytes": memory.peak_backward_bytes,
        "recomputed_nodes": outcome.recomputed_nodes,
        **asdict(outcome),
        **asdict(cost),
        "recomputed_flops_share": cost.flops_share,
        "recomputed_moved_bytes_share": cost.moved_bytes_share,
        **{f"{phase}_s": _times(record, phase) for phase in PHASES},
        "ratios": None
        if record.ratios is None
        else {phase: asdict(ratio) for phase, ratio in record.ratios.items()},
        "passes": {
            "warmup": [asdict(sample) for sample in record.warmup],
            "counted": [asdict(sample) for sample in record.samples],
        },
        "trace": asdict(record.trace),
    }


def _times(record: StrategyRecord, phase: str) -> dict[str, Any]:
    derived = {} if record.times is None else asdict(record.times[phase])
    return {"median": None, **derived, "samples": record.seconds(phase)}


def with_finite_numbers(value: Any, path: str, warnings: list[str]) -> Any:
    """`value` with null for each number that JSON cannot hold; `warnings` learns where."""
    if isinstance(value, dict):
        return {
            key: with_finite_numbers(item, f"{path}.{key}", warnings) for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [with_finite_numbers(item, f"{path}[{i}]", warnings) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        warning = f"{path.lstrip('.')} is {value}, printed as null"
        if warning not in warnings:  # a record that was read back has it already
            warnings.append(warning)
        return None
    return value


def read_record(text: str, place: str) -> RunRecord:
    """The record in `text`; `place` is how errors name it.

    Raises:
        RecordFileError: not JSON, not a run, or of a schema that this version does not know.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordFileError(
            f"{place} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    _check_schema(data, place)
    try:
        return analysed(_record(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordFileError(
            f"{place} is not a whole {SCHEMA} record: {error!r}", "was it written by `ckpt run`?"
        ) from error


def _check_schema(data: Any, place: str) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith(f"{FAMILY}/"):
        raise RecordFileError(
            f"{place} has schema `{schema}`, this version reads `{SCHEMA}`",
            "use the version of ckpt that wrote it, or a newer one",
        )
    raise RecordFileError(
        f"{place} has schema `{schema}`, not `{SCHEMA}`", "give a file that `ckpt run` wrote"
    )


def _record(data: Mapping[str, Any]) -> RunRecord:
    workload = dict(data["workload"])
    return RunRecord(
        title=workload.pop("title"),
        workload=workload,
        backend=data["device"],
        machine=filled(Machine, data["machine"]),
        version=data["version"],
        seed=data["seed"],
        processes=data["processes"],
        threshold=data["threshold"],
        stopped=data["stopped"],
        partial=data["partial"],
        config=data["config"],
        warnings=tuple(data["warnings"]),
        strategies=tuple(_strategy(entry) for entry in data["strategies"]),
        library=data.get("library", ""),
        failures=tuple(
            filled(Failure, {**entry, "live": _live(entry["live"])})
            for entry in data.get("failures", ())
        ),
        peers=tuple(read_peer(entry) for entry in data.get("peers", ())),
    )


def _live(data: Mapping[str, Any]) -> PeakLive:
    return filled(PeakLive, {**data, "largest": _all(LiveTensor, data["largest"])})


def _memory(data: Mapping[str, Any]) -> Memory:
    allocators = {
        key: filled(AllocatorPeak, known)
        for key in ("allocator_forward", "allocator_backward")
        if (known := data.get(key)) is not None
    }
    return filled(Memory, {**data, **allocators, "peak_live": _live(data["peak_live"])})


def _strategy(data: Mapping[str, Any]) -> StrategyRecord:
    loss = math.nan if data["loss"] is None else data["loss"]
    return StrategyRecord(
        strategy=data["strategy"],
        device=data["device"],
        reference=data["reference"],
        memory=_memory(data),
        outcome=filled(Outcome, {**data, "loss": loss}),
        cost=filled(Cost, data),
        trace=_trace(data["trace"]),
        warmup=_all(Sample, data["passes"]["warmup"]),
        samples=_all(Sample, data["passes"]["counted"]),
    )


def _trace(data: Mapping[str, Any]) -> Trace:
    lists = {
        "timeline": _all(TimelinePoint, data["timeline"]),
        "lives": _all(Life, data["lives"]),
        "nodes": _all(NodeFate, data["nodes"]),
        "retrievals": _all(Retrieval, data["retrievals"]),
    }
    return filled(Trace, {**data, **lists})


def _all(kind: type[Data], entries: Sequence[Mapping[str, Any]]) -> tuple[Data, ...]:
    return tuple(filled(kind, entry) for entry in entries)
