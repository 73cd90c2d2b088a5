"""Several programs in one run, one after another: each with rounds of its own.

Invariant: what a program holds is let go before the next one is opened, so that a list needs no
more memory than the largest of its programs. Rounds of two programs are therefore not interleaved;
ratios are taken within one alone.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.measure.machine import Machine
from ckptcli.measure.origin import Origin, read_origin
from ckptcli.measure.point import Point, point_text
from ckptcli.measure.points import Part, joined, side_by_side
from ckptcli.measure.record import Failure, RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.stability import read_load
from ckptcli.measure.statistics import fewest_samples
from ckptcli.profiling.job import Job, Progress
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.profiling.profile import carried_out, machine_of, with_doubts
from ckptcli.workloads.base import Workload

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine


MOST_TELLING = 0.1
"""Of the time between two rounds that are told, the share that telling one may take."""


@dataclass(frozen=True, slots=True)
class ProgramPoint:
    """A program to profile: where it stands, and what opens it anew."""

    point: Point
    open: Callable[[], Workload]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all programs of a run have in common; see `ckptcli.profiling.profile.profile`.

    Attributes:
        workload: what the record says of all, from `ckptcli.measure.points.common_workload`.
        plan: of all programs: each gets its share of `max_time_s`, and as many rounds as a verdict
            takes that is one of many.
    """

    workload: dict[str, object]
    strategies: Sequence[Strategy]
    reference: str | None
    backend: Backend
    engines: Sequence[Engine]
    plan: Plan
    threshold: float
    config: dict[str, object]
    command: Sequence[str]
    limit_bytes: int | None = None


def profile_points(
    programs: Sequence[ProgramPoint],
    surroundings: Surroundings,
    tell: Progress,
    finished: Callable[[RunRecord], None] | None = None,
) -> RunRecord:
    """Profile each program under each strategy.

    `finished` gets the record so far after each program and after each round of one, unless telling
    takes more than a share of the time: what is told grows with the programs.

    An interrupt gives a record of what is measured, marked partial: programs before it whole, that
    which it met with its complete rounds.

    Raises:
        UsageError: a program that the engines cannot run.
        PassOutOfMemory: no program fits under any strategy; one that does not is left out and told
            in `failures`.
    """
    before = read_load()
    run = _Run(programs, surroundings, tell, finished)
    run.measure()
    return with_doubts(run.record(), before, run.waiting)


def _share(of: Surroundings, programs: int) -> Plan:
    """The rounds of one of so many programs."""
    rows = len(of.strategies) * (1 + len(of.engines) + bool(of.config.get("replay")))
    least = fewest_samples(max(1, (rows - 1) * programs))
    time_s = of.plan.max_time_s / programs
    return replace(of.plan, max_time_s=time_s, least=max(of.plan.least, least))


class _Run:
    """The programs that are measured so far."""

    def __init__(
        self,
        programs: Sequence[ProgramPoint],
        surroundings: Surroundings,
        tell: Progress,
        finished: Callable[[RunRecord], None] | None,
    ) -> None:
        self._programs = programs
        self._of = surroundings
        self._tell = tell
        self._finished = finished
        self._machine: Machine = machine_of(surroundings.backend)
        self._origin: Origin = read_origin(surroundings.command)
        self._plan = _share(surroundings, len(programs))
        self._parts: list[Part] = []
        self._failures: list[Failure] = []
        self._stopped: str | None = None
        self._told_s, self._telling_s = 0.0, 0.0
        self.waiting: str | None = None

    def measure(self) -> None:
        """One program after another, until an interrupt."""
        try:
            for point in self._programs:
                if self._stopped is None:
                    self._measure_or_leave_out(point)
        except KeyboardInterrupt as stop:
            if not self._parts:
                raise
            self._stopped = str(stop) or "interrupted"
        if not self._parts:
            raise PassOutOfMemory(*self._failures)

    def _measure_or_leave_out(self, point: ProgramPoint) -> None:
        try:
            self._measure(point)
        except PassOutOfMemory as error:
            found = dict(point.point)
            self._failures += [replace(failure, point=found) for failure in error.failures]
        gc.collect()  # a network may hold itself in a cycle
        self._of.backend.release_cached()

    def _measure(self, point: ProgramPoint) -> None:
        job = self._job(point.open())

        def told(partial: RunRecord) -> None:
            self._tell_finished(Part(point.point, partial))

        record = carried_out(job, self._telling(point), told)
        self.waiting = self.waiting or job.waiting()
        self._parts.append(Part(point.point, record))
        if record.partial:
            self._stopped = record.stopped
        elif point is not self._programs[-1]:
            self._tell_finished()

    def _tell_finished(self, *measured: Part) -> None:
        """Tell of the programs before, and of one that is being measured; unless that is dear."""
        start_s = time.perf_counter()
        is_dear = start_s - self._told_s < self._telling_s / MOST_TELLING
        if self._finished is None or is_dear:
            return
        known = side_by_side([*self._parts, *measured], self._of.workload)
        self._finished(self._with_failures(known, is_partial=True))
        self._told_s = time.perf_counter()
        self._telling_s = self._told_s - start_s

    def _job(self, workload: Workload) -> Job:
        of = self._of
        return Job(
            workload=workload,
            strategies=of.strategies,
            device=Device(of.backend),
            reference=of.reference,
            plan=self._plan,
            threshold=of.threshold,
            config=of.config,
            machine=self._machine,
            origin=self._origin,
            engines=of.engines,
            limit_bytes=of.limit_bytes,
        )

    def _telling(self, point: ProgramPoint) -> Progress:
        def tell(phase: str, done: int, most: int) -> None:
            self._tell(f"{point_text(point.point)} {phase}", done, most)

        return tell

    def record(self) -> RunRecord:
        """The record of what is measured, at least one program."""
        whole = joined(self._parts, self._of.workload)
        record = self._with_failures(whole, is_partial=self._stopped is not None)
        return replace(record, warnings=(*self._missing(), *record.warnings))

    def _missing(self) -> list[str]:
        """What an interrupt left unmeasured."""
        done = [part.point for part in self._parts] + [failure.point for failure in self._failures]
        left = [point_text(point.point) for point in self._programs if point.point not in done]
        return [f"{self._stopped}: not measured: {', '.join(left)}"] if left else []

    def _with_failures(self, record: RunRecord, is_partial: bool) -> RunRecord:
        return replace(
            record,
            partial=is_partial or record.partial,
            failures=(*self._failures, *record.failures),
        )
