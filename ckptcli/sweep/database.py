"""A sweep in one DuckDB file: `points`, `rows` and `samples`, for SQL; see `TABLES`.

Invariant: a point is in all tables or in none, whatever ends the process: each is a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ckptcli.errors import MissingLibraryError, OutputFileError, UsageError
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record
from ckptcli.sweep.outcome import Outcome
from ckptcli.sweep.result import PointResult
from ckptcli.sweep.sweep_json import figures
from ckptcli.sweep.tasks import Task
from ckptcli.version import VERSION

FIGURES = (
    ("saved_bytes", "BIGINT"),
    ("peak_bytes", "BIGINT"),
    ("ledger_peak_bytes", "BIGINT"),
    ("workspace_bytes", "BIGINT"),
    ("gradient", "DOUBLE"),
    ("recomputed_nodes", "BIGINT"),
    ("total_s", "DOUBLE"),
    ("total_low_s", "DOUBLE"),
    ("total_high_s", "DOUBLE"),
    ("ratio", "DOUBLE"),
    ("verdict", "VARCHAR"),
    ("grad_sha256", "VARCHAR"),
)
"""The figures of a row, as `ckpt.sweep/1` has them."""

TABLES = {
    "points": (
        "key VARCHAR PRIMARY KEY, point VARCHAR, status VARCHAR, reason VARCHAR, host VARCHAR, "
        "device VARCHAR, version VARCHAR, record VARCHAR"
    ),
    "rows": "key VARCHAR, strategy VARCHAR, "
    + ", ".join(f"{name} {kind}" for name, kind in FIGURES),
    "samples": (
        "key VARCHAR, strategy VARCHAR, process INTEGER, round INTEGER, forward_s DOUBLE, "
        "backward_s DOUBLE, total_s DOUBLE"
    ),
}
"""`point` is JSON, `record` the whole record as JSON; a sample is a counted one, rounds from 0."""


class Database:
    """Where the points of a sweep are kept, one file for all; see `Store`."""

    def __init__(self, path: Path) -> None:
        """Raises:
        MissingLibraryError: DuckDB is not installed.
        UsageError: the file is another's, is in use, or cannot be written.
        """
        try:
            import duckdb
        except ImportError as error:
            raise MissingLibraryError(
                "--store needs duckdb, which is not installed", "pip install 'ckptcli[sweep]'"
            ) from error
        self._error: type[Exception] = duckdb.Error
        self._path = path
        try:
            self._connection: Any = duckdb.connect(str(path))
            for name, columns in TABLES.items():
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        except duckdb.Error as error:
            raise UsageError(
                f"`{path}` cannot be the store of a sweep: {str(error).splitlines()[0]}",
                "name a file that a sweep wrote, or a new one",
            ) from None

    def close(self) -> None:
        """Leave the file to others."""
        self._connection.close()

    def has(self, key: str, failures_too: bool = True) -> bool:
        """Whether the point is there, by default also as one that failed."""
        known = self._rows("SELECT status FROM points WHERE key = ?", key)
        return bool(known) and (failures_too or known[0][0] == "measured")

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Keep what came of a point, in place of what is known of it.

        Raises:
            OutputFileError: it cannot be written.
        """
        record = None if outcome.text is None else read_record(outcome.text, "a point's record")
        status = "failed" if record is None else "measured"
        device = None if record is None else record.device
        head = (task.key, json.dumps(dict(task.point)), status, outcome.reason, outcome.host)
        try:
            with self._transaction():
                for name in TABLES:
                    self._connection.execute(f"DELETE FROM {name} WHERE key = ?", [task.key])
                self._insert("points", [[*head, device, VERSION, outcome.text]])
                if record is not None:
                    self._insert("rows", _figures(task.key, record))
                    self._insert("samples", _samples(task.key, record))
        except self._error as error:
            raise OutputFileError(
                f"`{self._path}` cannot be written: {str(error).splitlines()[0]}",
                "free space or name another file",
            ) from None

    def results(self, tasks: Iterable[Task]) -> Iterator[PointResult]:
        """What is known of each point, in order.

        Raises:
            RecordFileError: a record that is none.
        """
        for task in tasks:
            query = "SELECT record, reason, host FROM points WHERE key = ?"
            (text, reason, host), *_ = [*self._rows(query, task.key), (None, None, None)]
            place = f"point {task.key} of `{self._path}`"
            record = None if text is None else read_record(text, place)
            yield PointResult(task.key, dict(task.point), record, reason, host)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of what happens inside, or nothing where it is interrupted."""
        self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _rows(self, query: str, key: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(query, [key]).fetchall()
        return found

    def _insert(self, table: str, rows: Iterable[list[Any]]) -> None:
        for row in rows:
            places = ", ".join("?" * len(row))
            self._connection.execute(f"INSERT INTO {table} VALUES ({places})", row)


def _figures(key: str, record: RunRecord) -> Iterator[list[Any]]:
    for row in record.rows:
        if row.reason is None:
            called = record.name_of(row)
            known = figures(called, row)
            yield [key, called, *(known[name] for name, _ in FIGURES)]


def _samples(key: str, record: RunRecord) -> Iterator[list[Any]]:
    for row in record.rows:
        rounds: dict[int, int] = {}
        for sample in row.samples:
            number = rounds.get(sample.process, 0)
            rounds[sample.process] = number + 1
            times = [sample.forward_s, sample.backward_s, sample.total_s]
            yield [key, record.name_of(row), sample.process, number, *times]
