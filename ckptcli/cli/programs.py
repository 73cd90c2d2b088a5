"""The programs that the options stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from ckptcli.errors import UsageError
from ckptcli.measure.machine import available_bytes, within_available_memory
from ckptcli.options.effects import Subject, without_effect
from ckptcli.options.listing import options_of
from ckptcli.options.program import MemoryCheckOptions, ProgramOptions
from ckptcli.options.subjects import WORKLOAD
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.registry import open_workloads, options_without_effect, points_of

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.cli.line import Line
    from ckptcli.workloads.base import Workload

Item = TypeVar("Item")


def open_programs(
    program: ProgramOptions, sizes: WorkloadOptions, memory: MemoryCheckOptions
) -> list[Workload]:
    """The workloads that the options stand for, at least one.

    Raises:
        UnknownNameError, UsageError: as `open_workloads`.
    """
    # A program of the user's own is run to try it out.
    with nullcontext() if memory.no_memory_check else within_available_memory():
        return open_workloads(program.workload_text, sizes)


def check_dtypes(program: ProgramOptions, workloads: Sequence[Workload], backend: Backend) -> None:
    """Refuse a workload whose own dtype the device does not have, such as float64 on Apple's GPU.

    Raises:
        UsageError: what to use instead.
    """
    name, unused = options_without_effect(program.workload_text)
    for workload in workloads:
        dtype = workload.settings.get("dtype")
        if dtype is not None and dtype not in backend.dtypes:
            other = "" if "dtype" in unused else f"--dtype {' or '.join(backend.dtypes)}, or "
            raise UsageError(
                f"workload `{name}` computes in {dtype}, which {backend.label} does not have",
                f"use {other}--device cpu",
            )


def places_of(
    program: ProgramOptions, sizes: WorkloadOptions, workloads: Sequence[Workload]
) -> list[dict[str, float]]:
    """Of each opened workload the value of every option that has several; empty without lists."""
    points = [dict(point.values) for point in points_of(program.workload_text, sizes)]
    return points * (len(workloads) // len(points))  # a file of several cases has no lists


def drained(items: list[Item]) -> Iterator[Item]:
    """Each item, which the list lets go of then: what a network holds goes with its workload."""
    while items:
        yield items.pop(0)


def program_notes(
    line: Line, program: ProgramOptions, workloads: list[Workload], engines: Sequence[str] = ()
) -> list[str]:
    """What the workloads have to say, and warnings about options without effect on them; `engines`
    run them beside ckpt's own.

    Raises:
        UsageError: an option whose loss would not be noticed.
    """
    notes = [note for opened in workloads for note in getattr(opened, "notes", ())]
    subject = subject_of(WORKLOAD, program.workload_text, engines)
    return [
        *notes,
        *_memory_notes(line),
        *without_effect(line.options, line.given, subject),
    ]


def _memory_notes(line: Line) -> list[str]:
    if "no_memory_check" in line.given or available_bytes() is not None:
        return []
    return ["the available memory is not known here: whether the workload fits is not checked"]


def subject_of(kind: str, text: str, engines: Sequence[str] = ()) -> Subject:
    """A workload or an experiment as a subject; call after it was opened."""
    name, unused = options_without_effect(text)
    uses = frozenset(option.name for option in options_of(WorkloadOptions)) - set(unused)
    return Subject(kind, f"workload `{name}`", uses, frozenset(engines))
