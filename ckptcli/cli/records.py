"""Saved records on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcli.errors import RecordFileError

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord

STDIN = "-"


def read_record_file(name: str) -> RunRecord:
    """The record in a file, or of all points in the folder of a sweep; `-` is stdin.

    Raises:
        RecordFileError: it cannot be read, is no record, or is several.
    """
    first, *others = (found := read_records(name)).values()
    if others:
        raise RecordFileError(
            f"`{name}` has points of several kinds: {'; '.join(found)}",
            "name one of the files in it",
        )
    return first


def read_records(name: str) -> dict[str, RunRecord]:
    """The same, of a folder whose points differ in words a record for each of these; else by "".

    Raises:
        RecordFileError: it cannot be read, or is no record.
    """
    if name != STDIN and Path(name).is_dir():
        from ckptcli.sweep.folder_record import records_in

        return records_in(Path(name))
    return {"": _read_file(name)}


def _read_file(name: str) -> RunRecord:
    from ckptcli.measure.record_json import read_record

    place = "stdin" if name == STDIN else f"`{name}`"
    try:
        record = read_record(_text(name), place)
    except OSError as error:
        raise RecordFileError(
            f"{place} cannot be read: {error.strerror}", "give a file that `ckpt run --json` wrote"
        ) from error
    except UnicodeDecodeError as error:
        raise RecordFileError(
            f"{place} is not UTF-8 text: byte {error.start} is wrong",
            "give a file that `ckpt run --json` wrote",
        ) from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise RecordFileError(
            f"{place} has a figure that no run can have: {error}", "was it written by `ckpt run`?"
        ) from error
    return record


def _text(name: str) -> str:
    if name == STDIN and sys.stdin is None:
        raise RecordFileError("stdin is closed", "give a file, or a pipe for `-`")
    data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    return data.decode("utf-8-sig")
