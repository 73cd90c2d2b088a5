"""Rounds spread over fresh processes, so that two records can be compared.

Memory layout, hash seed and the BLAS's threads differ from process to process and stay within one;
samples of one process are therefore not independent (pyperf). Each process runs the whole command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from ckptcli.errors import CkptError
from ckptcli.exit_codes import STOPPED
from ckptcli.measure.analysis import analysed
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import RunRecord, StrategyRecord
from ckptcli.measure.record_json import read_record

Entry = TypeVar("Entry", StrategyRecord, PeerRecord)


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
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", "run", "--config", os.devnull, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("CKPT_")},
    )
    if done.returncode in STOPPED:
        raise KeyboardInterrupt("interrupted")
    has_record = done.stdout.startswith("{")  # also where a strategy ran out of memory
    if not has_record:
        raise CkptError(f"a measuring process ended with {done.returncode}: {done.stderr.strip()}")
    return read_record(done.stdout, "the output of a measuring process")


def merged(records: Sequence[RunRecord]) -> RunRecord:
    """One record with the samples of all; memory and trace are those of the first.

    A strategy or peer that one of them lacks is left out; a strategy that ran out of memory is one.
    """
    strategies = _in_all([record.strategies for record in records], _strategy)
    peers = _in_all([record.peers for record in records], _engine_and_strategy)
    whole = replace(
        records[0],
        processes=len(records),
        strategies=tuple(map(_with_samples_of_all, strategies)),
        peers=tuple(map(_merged_peer, peers)),
        failures=tuple({f.strategy: f for record in records for f in record.failures}.values()),
        warnings=tuple(dict.fromkeys(text for record in records for text in record.warnings)),
        stopped=f"{sum(record.rounds for record in records)} rounds in {len(records)} processes",
    )
    return analysed(whole)


def _strategy(entry: StrategyRecord) -> str:
    return entry.strategy


def _engine_and_strategy(entry: PeerRecord) -> tuple[str, str]:
    return entry.engine, entry.strategy


def _in_all(
    lists: Sequence[Sequence[Entry]], key: Callable[[Entry], Hashable]
) -> list[list[Entry]]:
    """The entries of each key that every list has, in the order of the first list."""
    known = [{key(entry): entry for entry in entries} for entries in lists]
    return [
        [entries[key(first)] for entries in known]
        for first in lists[0]
        if all(key(first) in entries for entries in known)
    ]


def _merged_peer(entries: Sequence[PeerRecord]) -> PeerRecord:
    """A peer that has no figures in one process has none at all, for the reason given there."""
    refused = next((entry for entry in entries if entry.reason is not None), None)
    return refused or _with_samples_of_all(entries)


def _with_samples_of_all(entries: Sequence[Entry]) -> Entry:
    samples = tuple(
        replace(sample, process=process)
        for process, entry in enumerate(entries)
        for sample in entry.samples
    )
    return replace(entries[0], samples=samples)
