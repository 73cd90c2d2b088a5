"""The programs that the options stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.measure.machine import available_bytes, within_available_memory
from ckptcli.options.effects import Kind
from ckptcli.options.listing import options_of
from ckptcli.options.output import QuietOptions
from ckptcli.options.program import DeviceOptions, MemoryCheckOptions, ProgramOptions
from ckptcli.options.subjects import EXPERIMENT, WORKLOAD
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.registry import (
    is_experiment,
    open_workloads,
    options_without_effect,
    points_of,
)

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.workloads.base import Workload

Item = TypeVar("Item")


class WorkloadSource(Protocol):
    """The options that say which workload, and where it computes."""

    @property
    def program(self) -> ProgramOptions: ...

    @property
    def workload(self) -> WorkloadOptions: ...

    @property
    def memory(self) -> MemoryCheckOptions: ...

    @property
    def device(self) -> DeviceOptions: ...

    @property
    def notes(self) -> QuietOptions: ...


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs that the options stand for, and what they run on.

    Attributes:
        workloads: At least one.
        points: Of each the value of every option that has several; empty without lists.
        has_memory_check: Whether one that cannot fit is refused.
    """

    workloads: list[Workload]
    points: list[dict[str, float]]
    backend: Backend
    has_memory_check: bool

    def check(self, strategies: Sequence[Strategy]) -> None:
        """Refuse all if one of them cannot run, as `check_one`."""
        for workload in self.workloads:
            self.check_one(workload, strategies)

    def check_one(self, workload: Workload, strategies: Sequence[Strategy]) -> None:
        """Refuse a workload that cannot run.

        Raises:
            UsageError: a strategy that needs layers, on a program without.
            OutOfMemoryError: a program that does not fit in memory, where that is checked.
        """
        from ckptcli.cli.strategy_choice import check_layers
        from ckptcli.profiling.memory_needed import check_fits

        check_layers(strategies, workload)
        if self.has_memory_check:
            check_fits(workload, strategies, self.backend)

    def each(self) -> Iterator[tuple[dict[str, float], Workload]]:
        """Each workload at its point, which the list lets go of then."""
        return zip(self.points, drained(self.workloads))


def opened_programs(options: WorkloadSource, line: Line) -> Programs:
    """The programs, of which is told what they have to say.

    Raises:
        UnknownNameError, UsageError: as `open_workloads` and `open_device`.
    """
    from ckptcli.cli.devices import open_device

    workloads = open_programs(options.program, options.workload, options.memory)
    notes = program_notes(line, workloads)
    backend = open_device(options.device, options.workload.dtype, options.notes.quiet)
    check_dtypes(options.program, workloads, backend)
    warn(notes, options.notes.quiet)
    points = places_of(options.program, options.workload, workloads)
    return Programs(workloads, points, backend, not options.memory.no_memory_check)


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


def program_notes(line: Line, workloads: list[Workload]) -> list[str]:
    """What the workloads have to say."""
    notes = [note for opened in workloads for note in getattr(opened, "notes", ())]
    return [*notes, *_memory_notes(line)]


def _memory_notes(line: Line) -> list[str]:
    if "no_memory_check" in line.given or available_bytes() is not None:
        return []
    return ["the available memory is not known here: whether the workload fits is not checked"]


def kind_of_workload(text: str, engines: Sequence[str] = ()) -> Kind:
    """What options mean for a workload, or an experiment; `engines` run it beside ckpt's own.

    Raises:
        UnknownNameError, UsageError: no workload has this name.
    """
    subject = EXPERIMENT if is_experiment(text) else WORKLOAD
    name, unused = options_without_effect(text)
    uses = frozenset(option.name for option in options_of(WorkloadOptions)) - set(unused)
    return Kind(subject, f"workload `{name}`", uses, frozenset(engines))
