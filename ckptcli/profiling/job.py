"""The main job, step by step: memory passes, what checks them, timed rounds.

Invariant: a strategy or a peer that does not fit in memory is left out, and the others go on.
"""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ckptcli.autodiff.device import Device
from ckptcli.backends.workspace import tracemalloc_is_exact
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.measure.analysis import analysed
from ckptcli.measure.evidence import disagreement
from ckptcli.measure.machine import Machine
from ckptcli.measure.origin import Origin
from ckptcli.measure.record import Failure, RunRecord
from ckptcli.measure.resident import resident_rise_bytes
from ckptcli.measure.rounds import Plan, Rounds, Sample, collector_off, run_rounds
from ckptcli.measure.row import Row
from ckptcli.measure.subject import Subject
from ckptcli.profiling.device_memory import check_limit
from ckptcli.profiling.divergence import loss_warning
from ckptcli.profiling.engine_warnings import engine_warnings
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.profiling.out_of_memory import PassOutOfMemory, told_as_failure
from ckptcli.profiling.rows import passes_of
from ckptcli.profiling.timed_pass import TimedPass
from ckptcli.version import VERSION
from ckptcli.workloads.base import Workload

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine
    from ckptcli.profiling.peer_passes import PeerPass

Progress = Callable[[str, int, int], None]
"""Told a phase, and how many of how many steps are done; never during a timed sample."""


@dataclass(slots=True)
class Job:
    """What the record is made of, but for the rounds."""

    workload: Workload
    strategies: Sequence[Strategy]
    device: Device
    reference: str | None
    plan: Plan
    threshold: float
    config: dict[str, object]
    machine: Machine
    origin: Origin
    engines: Sequence[Engine] = ()
    limit_bytes: int | None = None
    """The memory of a device that is not at hand; a strategy whose peak is above it is left out."""
    peers: list[PeerPass] = field(default_factory=list)
    passes: list[MemoryPass] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    stopped: str | None = None
    """Why there are no timed rounds, if a signal came during the memory passes."""

    def record(self, rounds: Rounds, partial: bool) -> RunRecord:
        record = analysed(
            RunRecord(
                workload={**self.workload.settings, "title": self.workload.title},
                device=self.device.backend.label,
                machine=self.machine,
                version=VERSION,
                seed=self.plan.seed,
                processes=1,
                threshold=self.threshold,
                stopped=rounds.stopped,
                partial=partial,
                config=self.config,
                warnings=(),
                rows=(
                    *(
                        self._row(strategy, measured, rounds)
                        for strategy, measured in zip(self.strategies, self.passes)
                    ),
                    *(peer.finished(rounds) for peer in self.peers),
                ),
                library=self.device.backend.library,
                failures=tuple(self.failures),
                origin=self.origin,
            )
        )
        return replace(record, warnings=tuple(self._warnings(record)))

    def _warnings(self, record: RunRecord) -> Iterator[str]:
        yield from self.notes
        yield from self._loss_warnings()
        yield from filter(None, (disagreement(row, record) for row in record.rows))
        yield from dict.fromkeys(lint for measured in self.passes for lint in measured.lints)

    def _loss_warnings(self) -> list[str]:
        dtype = self.workload.settings.get("dtype")
        found = []
        for strategy, measured in zip(self.strategies, self.passes):
            outcome = measured.outcome
            warning = loss_warning(strategy.name, outcome.loss, dtype)
            found += [] if warning is None else [warning]
            if outcome.gradient is not None and not math.isfinite(outcome.gradient):
                found.append(f"{strategy.name}: the gradient is {outcome.gradient}")
        return found

    def _row(self, strategy: Strategy, measured: MemoryPass, rounds: Rounds) -> Row:
        return Row(
            strategy=strategy.name,
            device=repr(self.device.autodiff().gradient_checkpointing(strategy)),
            reference=strategy.name == self.reference,
            memory=measured.memory,
            outcome=measured.outcome,
            cost=measured.cost,
            trace=measured.trace,
            passes=passes_of(rounds, strategy.name),
            library=self.device.backend.library,
        )

    def run_memory_passes(self, tell: Progress, passed: Callable[[], None]) -> None:
        """One pass a strategy, `passed` is called after each; what the engine warns of is noted
        once.
        """
        workspace = self.device.backend.sees_kernel_memory and tracemalloc_is_exact()
        with engine_warnings() as told:
            try:
                for done, strategy in enumerate(list(self.strategies)):
                    tell("memory", done, len(self.strategies))
                    self._run_memory_pass(strategy, workspace)
                    passed()
                if self.workload.replays:
                    self._run_replays(workspace, tell)
                self._run_peer_passes(tell)
                tell("difference", 0, 1)
                self._take_difference()
            except KeyboardInterrupt as stop:
                if not self.passes:
                    raise
                self.strategies = self.strategies[: len(self.passes)]
                self._add_unreached()
                self.stopped = str(stop) or "interrupted"
        self.notes += told
        if self.device.backend.sees_kernel_memory and not workspace:
            self.notes.append("this NumPy misreports to tracemalloc: peaks lack its temporaries")

    def _run_peer_passes(self, tell: Progress) -> None:
        """One pass a peer; begun anew where ckpt's own values do not fit, which come first."""
        if not self.engines:
            return
        from ckptcli.profiling.peer_passes import peer_passes

        while True:
            try:
                for peer in peer_passes(
                    self.engines,
                    self.strategies,
                    self.workload,
                    self.device,
                    lambda done, most: tell("peers", done, most),
                ):
                    self.peers.append(peer)
                    self.failures += [] if peer.failure is None else [peer.failure]
                return
            except PassOutOfMemory as error:
                failure = error.failures[0]
            self._leave_out(failure)

    def _add_unreached(self) -> None:
        """A row for each peer whose turn did not come."""
        if self.engines:
            from ckptcli.profiling.peer_passes import unreached

            self.peers += unreached(self.engines, self.strategies, self.peers)

    def _take_difference(self) -> None:
        """Set the derivative of a program with one number beside a finite difference."""
        parameters = list(self.workload.parameters().values())
        if self.passes[0].outcome.gradient is None or parameters[0].dtype.itemsize < 8:
            return
        from ckptcli.verify.differences import scalar_difference

        backend = self.device.backend
        try:
            with told_as_failure(backend, self._first(), lambda: "the finite difference"):
                found = scalar_difference(self.workload, backend)
        except PassOutOfMemory as error:
            self.notes.append(f"no finite difference of the loss: {error.failures[0].message}")
            return
        if found.reason is not None:
            self.notes.append(
                f"the finite difference of the loss cannot be used: {found.reason} (they are "
                f"{found.scatter:.1e} apart)"
            )
            return
        self.passes = [
            replace(p, outcome=replace(p.outcome, finite_difference=found.derivative))
            for p in self.passes
        ]
        for peer in self.peers:
            peer.hold_against(found.derivative)

    def tell_spread(self) -> None:
        """Where a library's bits vary from run to run, tell that from a wrong gradient."""
        if self.device.backend.is_deterministic:
            return
        for strategy in list(self.strategies):
            try:
                self._tell_spread_of(strategy)
                continue
            except PassOutOfMemory as error:
                failure = error.failures[0]
            self._leave_out(failure)

    def _tell_spread_of(self, strategy: Strategy) -> None:
        digests = {s.name: p.outcome.grad_sha256 for s, p in zip(self.strategies, self.passes)}
        if digests[strategy.name] == digests[self._first()]:
            return
        from ckptcli.verify.check import within_spread

        backend = self.device.backend
        with told_as_failure(backend, strategy.name, lambda: "a run to compare its bits"):
            within = within_spread(self.workload, strategy, backend)
        position = [s.name for s in self.strategies].index(strategy.name)
        measured = self.passes[position]
        outcome = replace(measured.outcome, grad_within_spread=within)
        self.passes[position] = replace(measured, outcome=outcome)

    def measure_process_peaks(self, tell: Progress) -> None:
        """One unwatched pass of each: what it raises the memory of the process by."""
        if not (self.device.backend.is_cpu and self.plan.is_timed) or self.stopped is not None:
            return
        gc.collect()
        try:
            with collector_off():
                for position, strategy in enumerate(self.strategies):
                    tell("process memory", position, len(self.strategies))
                    measured = self.passes[position]
                    rise = self._resident_rise(strategy)
                    memory = replace(measured.memory, process_peak_bytes=rise)
                    self.passes[position] = replace(measured, memory=memory)
                for peer in self.peers:
                    peer.measure_process_peak()
                gc.collect()  # a program may hold itself in a cycle; timed passes need the room
        except KeyboardInterrupt as stop:
            self.stopped = str(stop) or "interrupted"

    def _resident_rise(self, strategy: Strategy) -> int | None:
        """None of a pass that does not fit, which its own timed pass will tell."""
        with warnings.catch_warnings(), suppress(PassOutOfMemory):
            warnings.simplefilter("ignore", UntrackedBackwardWarning)
            return resident_rise_bytes(TimedPass(self.workload, self.device, strategy))
        return None

    def waiting(self) -> str | None:
        """A library in the run whose threads wait for each other; None if there is none."""
        backend, asked = self.device.backend, self.config.get("threads")
        if backend.waits_for_threads and asked != 1:
            return _title(backend.library)
        waits = (p for p in self.peers if p.engine.waits_for_threads and p.engine.threads != 1)
        return next((_title(peer.engine.version) for peer in waits), None)

    def _first(self) -> str:
        """What the others are compared with: the reference, else `none`, else the first."""
        names = [strategy.name for strategy in self.strategies]
        return next((n for n in (self.reference, "none") if n in names), None) or names[0]

    def _run_memory_pass(self, strategy: Strategy, workspace: bool) -> None:
        try:
            measured = memory_pass(self.workload, self.device, strategy, workspace)
            check_limit(strategy.name, measured.memory, self.limit_bytes)
            self.passes.append(measured)
            return
        except PassOutOfMemory as error:
            failure = error.failures[0]
        self._leave_out(failure)

    def _run_replays(self, workspace: bool, tell: Progress) -> None:
        """Each strategy as a flat program, a row of its own."""
        from ckptcli.profiling.replayed_pass import Tape, replayed_pass

        first = [strategy.name for strategy in self.strategies].index(self._first())
        expected = self.strategies[first], self.passes[first].outcome
        for done, (strategy, measured) in enumerate(zip(self.strategies, self.passes)):
            tell("replay", done, len(self.strategies))
            tape = Tape(self.workload, self.device, strategy, measured, *expected)
            peer = replayed_pass(tape, workspace)
            if peer.row.memory is not None:
                try:
                    check_limit(peer.name, peer.row.memory, self.limit_bytes)
                except PassOutOfMemory as error:
                    peer.fail(error.failures[0])
            self.peers.append(peer)
            self.failures += [] if peer.failure is None else [peer.failure]

    def _leave_out(self, failure: Failure) -> None:
        """Go on without a strategy or a peer that does not fit, and without what it left in memory.

        Raises:
            PassOutOfMemory: no strategy is left.
        """
        self.failures.append(failure)
        for peer in self.peers:
            if peer.name == failure.strategy:
                peer.fail(failure)
                gc.collect()
                return
        self._leave_out_strategy(failure)
        self.notes += [
            f"{peer.name}: no ratio to ckpt's own `{failure.strategy}`, which ran out of memory"
            for peer in self.peers
            if peer.row.strategy == failure.strategy and peer.network is not None
        ]

    def _leave_out_strategy(self, failure: Failure) -> None:
        left = [s for s in self.strategies if s.name != failure.strategy]
        if not left:
            raise PassOutOfMemory(*self.failures)
        self.passes = [
            measured
            for strategy, measured in zip(self.strategies, self.passes)
            if strategy.name != failure.strategy
        ]
        self.strategies = left
        gc.collect()
        self.device.backend.release_cached()

    def run_rounds(self, tell: Progress, finished: Callable[[RunRecord], None] | None) -> Rounds:
        """The timed rounds, by the plan; begun anew without a strategy that does not fit."""
        while True:
            if self.stopped is not None:
                return self.no_rounds(self.stopped)
            try:
                return self._run_rounds(tell, finished)
            except PassOutOfMemory as error:
                failure = error.failures[0]
            self._leave_out(failure)

    def no_rounds(self, why: str) -> Rounds:
        """Rounds of which none is complete."""
        empty: dict[str, list[Sample]] = {strategy.name: [] for strategy in self.strategies}
        return Rounds(empty, self.plan.warmup, why, interrupted=True)

    def _run_rounds(self, tell: Progress, finished: Callable[[RunRecord], None] | None) -> Rounds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UntrackedBackwardWarning)
            subjects: dict[str, Subject] = {
                s.name: TimedPass(self.workload, self.device, s) for s in self.strategies
            }
            subjects |= {peer.name: peer for peer in self.peers if peer.network is not None}
            return run_rounds(
                subjects,
                self.plan,
                reference=self._first(),
                clock=self.device.backend.clock(),
                between=lambda done, most: tell("timing", done, most),
                finished=None if finished is None else lambda r: finished(self.record(r, True)),
            )


def _title(library: str) -> str:
    """The name of a library without its version."""
    return library.rpartition(" ")[0]
