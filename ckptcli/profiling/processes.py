"""Rounds spread over fresh processes, so that two records can be compared.

Memory layout, hash seed and the BLAS's threads differ from process to process and stay within one;
samples of one process are therefore not independent (pyperf). Each process runs the whole command.

Invariant: a round that is complete when the run is stopped is in the record, whichever process made
it. A process is a session of its own, so that a terminal's interrupt reaches it through its parent
alone: one that came twice would break the record off while it is told.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO

from ckptcli.errors import CkptError
from ckptcli.exit_codes import STOPPED
from ckptcli.measure.analysis import analysed
from ckptcli.measure.point import Point
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record
from ckptcli.measure.row import Passes, Row
from ckptcli.profiling.parent import child_command, ending_pipe

TELLING_S = 4.0
"""What a process that is stopped may take to tell its rounds; `--timeout` ends all soon after."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a process has told, and why it was stopped, if it was."""

    record: RunRecord | None
    stopped: str | None = None


def run_in_processes(
    arguments: Sequence[str],
    processes: int,
    *,
    progress: Callable[[str, int, int], None],
    finished: Callable[[RunRecord], None],
) -> RunRecord:
    """Run `ckpt run ARGUMENTS` in `processes` processes, one after the other, and merge.

    `arguments` make the command print its record as JSON. An interrupt ends after the rounds that
    are complete, those of the process that runs included.

    Raises:
        CkptError: a process failed.
    """
    records: list[RunRecord] = []
    try:
        for done in range(processes):
            progress("process", done, processes)
            told = _run(arguments)
            record = told.record
            if record is not None and told.stopped is not None and records:
                record = _complete(record)
            if record is not None:
                records.append(record)
            if told.stopped is not None:
                raise KeyboardInterrupt(told.stopped)
            finished(replace(merged(records), partial=done + 1 < processes))
    except KeyboardInterrupt as stop:
        if not records:
            raise
        whole = merged(records)
        return replace(whole, partial=True, stopped=str(stop) or "interrupted")
    return merged(records)


def _complete(stopped: RunRecord) -> RunRecord | None:
    """Of a process that was stopped the programs with a complete round, which others lack; None if
    there is none. Before its first round a program may not even have every strategy.
    """
    parts = [part for part in stopped.parts if part.rounds > 0]
    kept = [program for program, part in zip(stopped.programs, stopped.parts) if part.rounds > 0]
    points = [program.point for program in kept]
    rows = [row for row in stopped.rows if row.point in points or not stopped.programs]
    return replace(stopped, rows=rows, programs=kept) if parts else None


def start_measuring(
    arguments: Sequence[str],
    pipe: int | None,
    out: IO[bytes],
    err: IO[bytes],
    folder: str | None = None,
    command: str = "run",
) -> subprocess.Popen[bytes]:
    """Start `ckpt run ARGUMENTS`, or another command, in `folder`, by default here; it ends with
    `pipe`.

    It gets its settings from `arguments` alone: no burn.toml, no `CKPT_*`.
    """
    return subprocess.Popen(
        child_command([command, "--config", os.devnull, *arguments], pipe),
        stdout=out,
        stderr=err,
        env={name: value for name, value in os.environ.items() if not name.startswith("CKPT_")},
        pass_fds=() if pipe is None else (pipe,),
        start_new_session=True,
        cwd=folder,
    )


def _run(arguments: Sequence[str]) -> _Told:
    """One process."""
    with (
        ending_pipe() as pipe,
        tempfile.TemporaryFile() as out,  # a pipe would lose what was read when a signal came
        tempfile.TemporaryFile() as err,
    ):
        process = start_measuring(arguments, pipe, out, err)
        stopped = _ended(process)
        text, complaint = (text_of(file) for file in (out, err))
    if stopped is None and process.returncode in STOPPED:
        stopped = "interrupted"
    has_record = text.startswith("{")  # also where a strategy ran out of memory
    if has_record:
        return _Told(read_record(text, "the output of a measuring process"), stopped)
    if stopped is None:
        raise CkptError(f"a measuring process ended with {process.returncode}: {complaint}")
    return _Told(None, stopped)


def _ended(process: subprocess.Popen[bytes]) -> str | None:
    """Wait for the end; why it was stopped, if this process was told to stop meanwhile."""
    try:
        process.wait()
    except KeyboardInterrupt as stop:
        if os.name == "posix":
            process.send_signal(signal.SIGINT)
        try:
            process.wait(TELLING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return str(stop) or "interrupted"
    return None


def text_of(file: IO[bytes]) -> str:
    """All that a process has written to the file."""
    file.seek(0)
    return file.read().decode("utf-8", "replace").strip()


def merged(records: Sequence[RunRecord]) -> RunRecord:
    """One record with the samples of all; memory and trace are those of the first.

    A row that one of them lacks is left out, as a strategy of ckpt's own that ran out of memory. A
    process that was stopped may lack whole programs: of these the others' samples are taken.
    """
    known = [{row.identity: row for row in record.rows} for record in records]
    whole_points = [_points(record) for record in records]
    whole = replace(
        records[0],
        processes=len(records),
        rows=tuple(
            _merged([rows.get(first.identity) for rows in known])
            for first in records[0].rows
            if all(
                first.identity in rows or first.point not in points
                for rows, points in zip(known, whole_points)
            )
        ),
        failures=tuple({f.label: f for record in records for f in record.failures}.values()),
        warnings=tuple(dict.fromkeys(text for record in records for text in record.warnings)),
        stopped=f"{sum(record.rounds for record in records)} rounds in {len(records)} processes",
    )
    return analysed(whole)


def _points(record: RunRecord) -> list[Point]:
    """Where the programs stand that a process has told of."""
    return [*(row.point for row in record.rows), *(f.point for f in record.failures)]


def _merged(rows: Sequence[Row | None]) -> Row:
    """The row of each process, None of one that did not come to it. A row without figures in one
    process has none at all, for the reason given there.
    """
    known = [(process, row) for process, row in enumerate(rows) if row is not None]
    refused = next((row for _, row in known if row.reason is not None), None)
    if refused is not None:
        return refused
    counted = tuple(
        replace(sample, process=process) for process, row in known for sample in row.samples
    )
    first = known[0][1]
    return replace(first, passes=Passes(first.passes.warmup, counted))
