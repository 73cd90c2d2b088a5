"""Warnings about figures that should not be trusted too far: each with a number and advice.

Thresholds from hyperfine (slow first run), torch.utils.benchmark (spread) and pyperf (load).
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from ckptcli.measure.machine import Machine, swapped_bytes
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.units import percent, size, threads

SLOW_FIRST_DEVIATIONS = 14.8
LEAST_DEVIATION = 0.01
"""As a share of the median; nearly equal times would make a first round of 2 % more a slow one."""

WIDE_SPREAD = 0.10
FEWEST_FOR_FIRST = 6
THREADS_SETTING = "threads"
MEMORY_SETTING = "memory_only"


@dataclass(frozen=True, slots=True)
class Load:
    """What else the machine was doing when a run began. None: not known."""

    load_average: float | None
    swapped_bytes: int | None


def read_load() -> Load:
    """The load now."""
    average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Load(average, swapped_bytes())


def stability_warnings(record: RunRecord, before: Load, waiting: str | None) -> list[str]:
    """What is known about the machine and the samples that puts the times in doubt.

    `waiting` names a library in the run whose threads wait for each other at the end of every op,
    so that one without a core stops all; None where none does. A run that times nothing has nothing
    to doubt.
    """
    if record.config.get(MEMORY_SETTING):
        return []
    asked = record.config.get(THREADS_SETTING)
    return [
        *_machine_warnings(record.machine, asked, before, waiting),
        *(text for row in record.rows for text in _sample_warnings(record.label(row), row)),
    ]


def _machine_warnings(
    machine: Machine, asked: object, before: Load, waiting: str | None
) -> Iterator[str]:
    cores = machine.cores or 1
    if before.load_average is not None and before.load_average > cores / 2:
        yield (
            f"the load average was {before.load_average:.1f} on {cores} cores when the run began: "
            "times may be high and wide; close other programs, or use more --reps"
            + (f", and for {waiting} --threads 1" if waiting else "")
        )
    core_type = machine.openblas_variables.get("OPENBLAS_CORETYPE")
    if core_type is not None:
        yield (
            f"OPENBLAS_CORETYPE is set to {core_type}, which can halve the speed of matrix "
            "products; unset it to measure what the machine can do"
        )
    if asked is not None and machine.blas_threads not in (asked, None):
        yield (
            f"the BLAS uses {threads(machine.blas_threads)}, {asked} were asked for; "
            "set OPENBLAS_NUM_THREADS before the start"
        )
    after = swapped_bytes()
    if before.swapped_bytes is not None and after is not None and after > before.swapped_bytes:
        yield (
            f"{size(after - before.swapped_bytes)} were swapped during the run: times include the "
            "disk's; use a smaller --n or --layers"
        )


def _sample_warnings(name: str, row: Row) -> Iterator[str]:
    totals_s = row.seconds("total")
    collected = [sample.collected for sample in row.samples]
    if any(collected):
        yield (
            f"{name}: the garbage collector ran inside {sum(collected)} of {len(collected)} "
            "samples; do not enable it while measuring"
        )
    if len(totals_s) < FEWEST_FOR_FIRST:
        return
    median_s = statistics.median(totals_s)
    deviation_s = statistics.median(abs(total_s - median_s) for total_s in totals_s)
    first = totals_s[0]
    if first - median_s > SLOW_FIRST_DEVIATIONS * max(deviation_s, LEAST_DEVIATION * median_s):
        yield (
            f"{name}: the first round took {first / median_s:.1f} times the median; "
            f"use --warmup {len(row.passes.warmup) + 1}"
        )
    low_s, _, high_s = statistics.quantiles(totals_s, n=4, method="inclusive")
    spread = (high_s - low_s) / median_s
    if spread > WIDE_SPREAD:
        yield (
            f"{name}: the middle half of the times spreads over {percent(spread, 0)} of the "
            "median; close other programs, fix the clock rate, or use more --reps"
        )
