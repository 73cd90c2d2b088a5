"""A run as JSON text and back: schema `ckpt.run/1`.

What is derived (medians, ratios, verdicts) is written for readers and computed anew when a file is
read.

Invariant: reading what was written gives the same record, but for figures that were not finite. A
key that was added to version 1 has a default in its class, which older files get.
"""

from __future__ import annotations

import json
from typing import Any

from ckptcli.errors import RecordFileError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.codec import DataError, read, with_finite_numbers, written
from ckptcli.measure.earlier import MODULE_SCHEMA, from_module, in_rows
from ckptcli.measure.record import SCHEMA, RunRecord

FAMILY, _, NEWEST = SCHEMA.partition("/")
_HINT = "was it written by `ckpt run`?"


def record_json(record: RunRecord) -> str:
    """The record as indented JSON text that ends in a newline."""
    return json.dumps(record_object(record), indent=2, allow_nan=False) + "\n"


def record_object(record: RunRecord) -> dict[str, Any]:
    """The record as plain data, every number finite."""
    warnings = list(record.warnings)
    whole = with_finite_numbers(written(record), "", warnings)
    return {"schema": SCHEMA, **whole, "warnings": warnings}


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
        whole = from_module(data) if data["schema"] == MODULE_SCHEMA else in_rows(data)
    except (LookupError, TypeError, AttributeError) as error:
        raise RecordFileError(
            f"{place} is not a whole {data['schema']} record: {error!r}", _HINT
        ) from error
    try:
        return analysed(read(RunRecord, whole))
    except DataError as error:
        raise RecordFileError(f"{place} is not a whole {SCHEMA} record: {error}", _HINT) from error


def _check_schema(data: Any, place: str) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema in (SCHEMA, MODULE_SCHEMA):
        return
    if isinstance(schema, str) and schema.startswith(f"{FAMILY}/"):
        raise RecordFileError(
            f"{place} has schema `{schema}`, this version reads `{SCHEMA}`",
            "use the version of ckpt that wrote it, or a newer one",
        )
    raise RecordFileError(
        f"{place} has schema `{schema}`, not `{SCHEMA}`", "give a file that `ckpt run` wrote"
    )
