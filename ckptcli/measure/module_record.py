"""What was measured of a PyTorch module of the user's own, and what autograd holds for it.

Schemas `ckpt.module/1` and `ckpt.saved-module/1`; units as in `ckpt.run/1`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ckptcli.measure.machine import Machine
from ckptcli.measure.peer_json import peer_object
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import Judgement
from ckptcli.measure.record_json import with_finite_numbers

MODULE_SCHEMA = "ckpt.module/1"
SAVED_SCHEMA = "ckpt.saved-module/1"


@dataclass(frozen=True, slots=True)
class ModuleRecord:
    """The module without and with checkpoints.

    Attributes:
        title: `FILE.py:MAKE`, the class and the number of its parameters.
        parameters_bytes, input_bytes: in every peak, in no saved figure.
        children: what the strategies group, by their paths.
        regions: by strategy, the children under each checkpoint.
        judgements: by strategy, one word on it; none of a row without figures.
        failed: the strategies under which the module failed; `reason` of their rows says why.
        rows: `none`, which the others are compared with, and the others.
    """

    title: str
    parameters_bytes: int
    input_bytes: int
    children: Sequence[str]
    regions: Mapping[str, Sequence[Sequence[str]]]
    judgements: Mapping[str, Judgement]
    failed: Sequence[str]
    machine: Machine
    version: str
    seed: int
    threshold: float
    stopped: str
    partial: bool
    warnings: Sequence[str]
    rows: Sequence[PeerRecord]

    @property
    def rounds(self) -> int:
        """How many rounds are complete and counted."""
        return min((len(row.samples) for row in self.rows if row.reason is None), default=0)


@dataclass(frozen=True, slots=True)
class ModuleSaved:
    """One storage that autograd holds after forward.

    Attributes:
        module: path and class of the module during whose forward it was saved first.
        ops: the steps of the backward pass that hold it, by the name of their `grad_fn`.
        bytes: of the whole storage, once.
    """

    module: str
    ops: Sequence[str]
    shape: Sequence[int]
    dtype: str
    bytes: int


def module_json(record: ModuleRecord) -> str:
    """The record as JSON text; rows are as the entries of `peers` in `ckpt.run/1`, with
    the regions and the judgement of each.

    A figure that is not finite is null there too.
    """
    warnings = list(record.warnings)
    whole = {
        "schema": MODULE_SCHEMA,
        **{
            name: getattr(record, name)
            for name in ("version", "title", "parameters_bytes", "input_bytes", "seed")
        },
        "children": list(record.children),
        "machine": asdict(record.machine),
        "rounds": record.rounds,
        "threshold": record.threshold,
        "stopped": record.stopped,
        "partial": record.partial,
        "warnings": [],
        "rows": [_row_object(record, row) for row in record.rows],
    }
    finite = with_finite_numbers(whole, "", warnings)
    return json.dumps({**finite, "warnings": warnings}, indent=2, allow_nan=False) + "\n"


def _row_object(record: ModuleRecord, row: PeerRecord) -> dict[str, Any]:
    judgement = record.judgements.get(row.strategy)
    return {
        **peer_object(row),
        "regions": [list(paths) for paths in record.regions.get(row.strategy, ())],
        "judgement": None if judgement is None else asdict(judgement),
    }


def saved_object(title: str, saved: Sequence[ModuleSaved]) -> dict[str, Any]:
    """The list as plain data."""
    return {
        "schema": SAVED_SCHEMA,
        "module": title,
        "saved_tensors": len(saved),
        "saved_bytes": sum(storage.bytes for storage in saved),
        "saved": [asdict(storage) for storage in saved],
    }
