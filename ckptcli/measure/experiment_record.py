"""The result of an experiment as frozen data, and as JSON: schema `ckpt.experiment/1`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ckptcli.measure.codec import with_finite_numbers
from ckptcli.measure.machine import Machine

SCHEMA = "ckpt.experiment/1"


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """An experiment that was carried out, as far as it came.

    Attributes:
        selection: which rounds `rounds` has, in words.
        rounds: the measured rounds by column; times in seconds end in `_s`.
        facts: name -> value of every other result.
        sentences: the same for the eye.
        wrong: a sentence for each value that is not what it has to be.
        stopped: why it ended early; None if it did not.
    """

    workload: Mapping[str, object]
    title: str
    device: str
    machine: Machine
    version: str
    selection: str
    rounds: Sequence[Mapping[str, int | float | None]]
    facts: Mapping[str, object]
    sentences: Sequence[str]
    wrong: Sequence[str]
    stopped: str | None


def experiment_json(record: ExperimentRecord) -> str:
    """The record as indented JSON text that ends in a newline; what is not finite is null."""
    whole = {
        "schema": SCHEMA,
        "version": record.version,
        "workload": {**record.workload, "title": record.title},
        "device": record.device,
        "machine": asdict(record.machine),
        "selection": record.selection,
        "partial": record.stopped is not None,
        "stopped": record.stopped,
        "rounds": list(record.rounds),
        "facts": dict(record.facts),
        "wrong": list(record.wrong),
    }
    finite = with_finite_numbers(whole, "", [])
    return json.dumps(finite, indent=2, allow_nan=False) + "\n"
