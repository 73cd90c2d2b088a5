"""The folder of a sweep: `points/KEY.json` a record, `failures/KEY.json` why there is none.

Invariant: a file is there whole or not at all, whatever ends the process that writes it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ckptcli.errors import OutputFileError, RecordFileError, UsageError
from ckptcli.measure.record_json import read_record
from ckptcli.sweep.outcome import Outcome
from ckptcli.sweep.result import PointResult
from ckptcli.sweep.tasks import Task
from ckptcli.version import VERSION

FAILURE_SCHEMA = "ckpt.failure/1"


class Store(Protocol):
    """Where the points of a sweep are kept: a folder, or a database."""

    def has(self, key: str, failures_too: bool = True) -> bool:
        """Whether the point is there, by default also as one that failed."""

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Keep what came of a point; a record takes the place of an earlier failure.

        Raises:
            OutputFileError: it cannot be written.
        """

    def results(self, tasks: Iterable[Task]) -> Iterator[PointResult]:
        """What is known of each point, in order.

        Raises:
            RecordFileError: a record that is none.
        """

    def close(self) -> None:
        """Leave it to others."""


class Folder:
    """Where the points of a sweep are kept, one file each; see `Store`."""

    def __init__(self, path: Path) -> None:
        """Raises:
        UsageError: the folder can neither be made nor written.
        """
        self.path = path
        self._points, self._failures = path / "points", path / "failures"
        try:
            for folder in (self._points, self._failures):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be a folder for a sweep: {error.strerror}",
                "name one that exists, or that can be made",
            ) from error

    def has(self, key: str, failures_too: bool = True) -> bool:
        """Whether the point is there, by default also as one that failed."""
        places = (self._points, self._failures) if failures_too else (self._points,)
        return any((place / f"{key}.json").exists() for place in places)

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Keep what came of a point; a record takes the place of an earlier failure.

        Raises:
            OutputFileError: it cannot be written.
        """
        name = f"{task.key}.json"
        if outcome.text is None:
            _write_whole(self._failures / name, json.dumps(_failure(task, outcome), indent=2))
            return
        _write_whole(self._points / name, outcome.text)
        with contextlib.suppress(FileNotFoundError):
            (self._failures / name).unlink()

    def results(self, tasks: Iterable[Task]) -> Iterator[PointResult]:
        """What is known of each point, in order.

        Raises:
            RecordFileError: a file that is no record.
        """
        for task in tasks:
            record = self._points / f"{task.key}.json"
            failure = self._failures / f"{task.key}.json"
            if record.exists():
                found = read_record(record.read_text("utf-8"), f"`{record}`")
                yield PointResult(task.key, dict(task.point), found)
            elif failure.exists():
                told = _read_failure(failure)
                yield PointResult(task.key, dict(task.point), None, told["reason"], told["host"])
            else:
                yield PointResult(task.key, dict(task.point), None)

    def close(self) -> None:
        """There is nothing that others could not use meanwhile."""


def is_folder(path: Path) -> bool:
    """Whether a sweep was kept there."""
    return (path / "points").is_dir()


def record_files(path: Path) -> list[Path]:
    """Every record in a folder, in the order of the keys; nothing is written there."""
    return sorted((path / "points").glob("*.json"))


def _failure(task: Task, outcome: Outcome) -> dict[str, Any]:
    return {
        "schema": FAILURE_SCHEMA,
        "version": VERSION,
        "point": dict(task.point),
        "words": list(task.words),
        "reason": outcome.reason,
        "host": outcome.host,
    }


def _read_failure(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if found["schema"] != FAILURE_SCHEMA or not {"reason", "host"} <= set(found):
            raise ValueError
    except (ValueError, LookupError, TypeError):
        raise RecordFileError(f"`{path}` is no {FAILURE_SCHEMA}", "remove it") from None
    return found


def _write_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OutputFileError(
            f"`{path}` cannot be written: {error.strerror}", "free space or name another folder"
        ) from error
