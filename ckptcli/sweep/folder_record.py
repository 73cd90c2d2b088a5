"""The points of a folder as records of several programs, for every command that takes a record.

Invariant: a record is of points that differ in numbers alone, each there once; points that differ
in a word, as the dtype, are records of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ckptcli.errors import RecordFileError
from ckptcli.measure.point import shown_name
from ckptcli.measure.points import Part, common_workload, joined
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record
from ckptcli.options.keywords import Keyword, keywords_in, shown_keyword
from ckptcli.options.listing import options_of
from ckptcli.options.workload import WorkloadOptions
from ckptcli.sweep.store import is_folder, record_files

WORDS = ("dtype", "backend_name", "device_name")
NUMBERS = tuple(
    option.name for option in options_of(WorkloadOptions) if option.kind in ("integers", "numbers")
)


def records_in(path: Path) -> dict[str, RunRecord]:
    """The records of a folder, by the words in which they differ, `dtype = float32`; by "" if all
    points are one record.

    Raises:
        RecordFileError: the folder has no point, a file that is none, or two of one point.
    """
    if not is_folder(path):
        raise RecordFileError(f"`{path}` is no folder of a sweep", "name one of `ckpt sweep --out`")
    found = [read_record(file.read_text("utf-8"), f"`{file}`") for file in record_files(path)]
    if not found:
        raise RecordFileError(f"`{path}` has no point that was measured", "let its sweep go on")
    keywords = sorted({name for record in found for name in _keywords(record)})
    texts = [name for name in keywords if not _is_number(found, name)]
    words = [name for name in (*WORDS, *texts) if _varies(found, name)]
    groups: dict[str, list[RunRecord]] = {}
    for record in found:
        key = ", ".join(f"{shown_name(name)} = {_value(record, name)}" for name in words)
        groups.setdefault(key, []).append(record)
    names = [*NUMBERS, *(name for name in keywords if name not in texts)]
    return {key: _as_one(path, members, names) for key, members in sorted(groups.items())}


def _value(record: RunRecord, name: str) -> Any:
    """What the program has; what it leaves open follows from its other settings."""
    known = _keywords(record).get(name, record.config.get(name))
    known = shown_keyword(known) if isinstance(known, bool) else known
    return record.workload.get(name) if known is None else known


def _varies(records: Sequence[RunRecord], name: str) -> bool:
    given = any(name in _keywords(r) or r.config.get(name) is not None for r in records)
    return given and len({str(_value(record, name)) for record in records}) > 1


def _keywords(record: RunRecord) -> dict[str, Keyword]:
    """Those that a module was made with."""
    texts = record.config.get("keyword_texts")
    return keywords_in(texts) if isinstance(texts, list | tuple) else {}


def _is_number(records: Sequence[RunRecord], keyword: str) -> bool:
    values = [_keywords(record).get(keyword) for record in records]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _as_one(path: Path, records: Sequence[RunRecord], numbers: Sequence[str]) -> RunRecord:
    names = [name for name in numbers if _varies(records, name)]
    parts = {tuple(_value(record, name) for name in names): record for record in records}
    if len(parts) < len(records):
        raise RecordFileError(
            f"`{path}` has two records of one point", "keep sweeps of other options apart"
        )
    if not names:
        return records[0]
    places = sorted(parts)
    lists: Mapping[str, str] = {
        name: ",".join(map(str, dict.fromkeys(sorted(values))))
        for name, values in zip(names, zip(*places))
    }
    workload = common_workload([parts[place].workload for place in places], lists)
    return joined([Part(dict(zip(names, place)), parts[place]) for place in places], workload)
