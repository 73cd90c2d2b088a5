"""The peers of a run as plain data and back: the list `peers` of schema `ckpt.run/1`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, TypeVar

from ckptcli.measure.peer_record import Agreement, PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.statistics import Ratio

PHASES = ("forward", "backward", "total")

Data = TypeVar("Data")


def peer_object(record: PeerRecord) -> dict[str, Any]:
    """One entry of `peers`."""
    agreement = record.agreement
    return {
        "engine": record.engine,
        "strategy": record.strategy,
        "library": record.library,
        "threads": record.threads,
        "reason": record.reason,
        "memory": None if record.memory is None else asdict(record.memory),
        "recomputed_by_op": record.recomputed_by_op,
        "agreement": agreement and {**asdict(agreement), "agrees": agreement.agrees},
        "compile_s": record.compile_s,
        **{f"{phase}_s": _times(record, phase) for phase in PHASES},
        "ratio": _ratio(record.ratio),
        "own_ratio": _ratio(record.own_ratio),
        "passes": {
            "warmup": [asdict(sample) for sample in record.warmup],
            "counted": [asdict(sample) for sample in record.samples],
        },
    }


def read_peer(data: Mapping[str, Any]) -> PeerRecord:
    """The record of an entry that `peer_object` made, without what is derived.

    Raises:
        KeyError, TypeError: something else.
    """
    known, memory = data["agreement"], data["memory"]
    return PeerRecord(
        engine=data["engine"],
        strategy=data["strategy"],
        library=data["library"],
        threads=data["threads"],
        reason=data["reason"],
        memory=None if memory is None else filled(PeerMemory, memory),
        recomputed_by_op=data["recomputed_by_op"],
        agreement=None if known is None else filled(Agreement, _with_nan(known)),
        compile_s=data["compile_s"],
        warmup=_samples(data["passes"]["warmup"]),
        samples=_samples(data["passes"]["counted"]),
    )


def filled(kind: type[Data], data: Mapping[str, Any]) -> Data:
    """`kind` from its keys; lists become tuples, as in the record that was written.

    A key may be missing where the class has a default: a file from before it was added lacks it.

    Raises:
        KeyError: one is missing that has no default.
    """
    values = {
        field.name: data[field.name]
        for field in fields(kind)  # type: ignore[arg-type]
        if field.name in data or field.default is MISSING
    }
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def _samples(entries: Sequence[Mapping[str, Any]]) -> tuple[PeerSample, ...]:
    return tuple(filled(PeerSample, entry) for entry in entries)


def _times(record: PeerRecord, phase: str) -> dict[str, Any]:
    known = None if record.times is None else record.times.get(phase)
    derived = {} if known is None else asdict(known)
    return {"median": None, **derived, "samples": record.seconds(phase)}


def _ratio(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else asdict(ratio)


def _with_nan(figures: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has null for a figure that was not finite."""
    return {key: math.nan if value is None else value for key, value in figures.items()}
