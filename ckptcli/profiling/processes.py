"""Rounds spread over fresh processes, so that two records can be compared.

Memory layout, hash seed and the BLAS's threads differ from process to process and stay within one;
samples of one process are therefore not independent (pyperf). Each process runs the whole command.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ckptcli.errors import CkptError
from ckptcli.exit_codes import STOPPED
from ckptcli.measure.analysis import analysed
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record
from ckptcli.measure.row import Passes, Row
from ckptcli.profiling.parent import child_command


def run_in_processes(
    arguments: Sequence[str],
    processes: int,
    *,
    progress: Callable[[str, int, int], None],
    finished: Callable[[RunRecord], None],
) -> RunRecord:
    """Run `ckpt run ARGUMENTS` in `processes` processes, one after the other, and merge.

    `arguments` make the command print its record as JSON. An interrupt ends after the rounds that
    are complete.

    Raises:
        CkptError: a process failed.
    """
    records: list[RunRecord] = []
    try:
        for done in range(processes):
            progress("process", done, processes)
            records.append(_run(arguments))
            finished(replace(merged(records), partial=done + 1 < processes))
    except KeyboardInterrupt as stop:
        if not records:
            raise
        whole = merged(records)
        return replace(whole, partial=True, stopped=str(stop) or "interrupted")
    return merged(records)


def _run(arguments: Sequence[str]) -> RunRecord:
    """One process. It gets its settings from `arguments` alone: no burn.toml, no `CKPT_*`."""
    with _pipe() as pipe:
        done = subprocess.run(
            child_command(["run", "--config", os.devnull, *arguments], pipe),
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={name: value for name, value in os.environ.items() if not name.startswith("CKPT_")},
            pass_fds=() if pipe is None else (pipe,),
        )
    if done.returncode in STOPPED:
        raise KeyboardInterrupt("interrupted")
    has_record = done.stdout.startswith("{")  # also where a strategy ran out of memory
    if not has_record:
        raise CkptError(f"a measuring process ended with {done.returncode}: {done.stderr.strip()}")
    return read_record(done.stdout, "the output of a measuring process")


@contextmanager
def _pipe() -> Iterator[int | None]:
    """The end of a pipe for a child to read, whose other end closes with this process."""
    if os.name != "posix":  # no other system hands a descriptor to a child by its number
        yield None
        return
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)


def merged(records: Sequence[RunRecord]) -> RunRecord:
    """One record with the samples of all; memory and trace are those of the first.

    A row that one of them lacks is left out, as a strategy of ckpt's own that ran out of memory.
    """
    known = [{row.key: row for row in record.rows} for record in records]
    whole = replace(
        records[0],
        processes=len(records),
        rows=tuple(
            _merged([rows[first.key] for rows in known])
            for first in records[0].rows
            if all(first.key in rows for rows in known)
        ),
        failures=tuple({f.strategy: f for record in records for f in record.failures}.values()),
        warnings=tuple(dict.fromkeys(text for record in records for text in record.warnings)),
        stopped=f"{sum(record.rounds for record in records)} rounds in {len(records)} processes",
    )
    return analysed(whole)


def _merged(rows: Sequence[Row]) -> Row:
    """A row without figures in one process has none at all, for the reason given there."""
    refused = next((row for row in rows if row.reason is not None), None)
    if refused is not None:
        return refused
    counted = tuple(
        replace(sample, process=process)
        for process, row in enumerate(rows)
        for sample in row.samples
    )
    return replace(rows[0], passes=Passes(rows[0].passes.warmup, counted))
