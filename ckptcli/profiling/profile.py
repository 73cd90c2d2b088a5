"""`profile`: the main job. Composes workload, engine, ledger and clock into a record."""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.backends.workspace import tracemalloc_is_exact
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UntrackedBackwardWarning, UsageError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.machine import Machine, read_machine
from ckptcli.measure.record import Failure, RunRecord, StrategyRecord
from ckptcli.measure.rounds import Plan, Rounds, Sample, Subject, run_rounds
from ckptcli.measure.stability import read_load, stability_warnings
from ckptcli.profiling.divergence import loss_warning
from ckptcli.profiling.engine_warnings import engine_warnings
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.profiling.out_of_memory import PassOutOfMemory, told_as_failure
from ckptcli.profiling.timed_pass import TimedPass
from ckptcli.version import VERSION
from ckptcli.workloads.base import Workload
from ckptcli.workloads.options import WorkloadOptions
from ckptcli.workloads.registry import open_workloads

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine
    from ckptcli.profiling.peer_passes import PeerPass

Progress = Callable[[str, int, int], None]
"""Told a phase, and how many of how many steps are done; never during a timed sample."""


@dataclass(slots=True)
class _Profile:
    """What the record is made of, but for the rounds."""

    workload: Workload
    strategies: Sequence[Strategy]
    device: Device
    reference: str | None
    plan: Plan
    threshold: float
    config: dict[str, object]
    machine: Machine
    engines: Sequence[Engine] = ()
    peers: list[PeerPass] = field(default_factory=list)
    passes: list[MemoryPass] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    stopped: str | None = None
    """Why there are no timed rounds, if a signal came during the memory passes."""

    def record(self, rounds: Rounds, partial: bool) -> RunRecord:
        return analysed(
            RunRecord(
                workload=self.workload.settings,
                title=self.workload.title,
                backend=self.device.backend.label,
                machine=self.machine,
                version=VERSION,
                seed=self.plan.seed,
                processes=1,
                threshold=self.threshold,
                stopped=rounds.stopped,
                partial=partial,
                config=self.config,
                warnings=(
                    *self.notes,
                    *self._loss_warnings(),
                    *self._disagreements(),
                    *(lint for measured in self.passes for lint in measured.lints),
                ),
                strategies=tuple(
                    self._strategy(strategy, measured, rounds)
                    for strategy, measured in zip(self.strategies, self.passes)
                ),
                library=self.device.backend.library,
                failures=tuple(self.failures),
                peers=tuple(peer.finished(rounds) for peer in self.peers),
            )
        )

    def _disagreements(self) -> list[str]:
        if not self.peers:
            return []
        from ckptcli.profiling.peer_passes import disagreement

        texts = [disagreement(peer.record) for peer in self.peers]
        return [text for text in texts if text is not None]

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

    def _strategy(self, strategy: Strategy, measured: MemoryPass, rounds: Rounds) -> StrategyRecord:
        return StrategyRecord(
            strategy=strategy.name,
            device=repr(self.device.autodiff().gradient_checkpointing(strategy)),
            reference=strategy.name == self.reference,
            memory=measured.memory,
            outcome=measured.outcome,
            cost=measured.cost,
            trace=measured.trace,
            warmup=tuple(rounds.samples[strategy.name][: rounds.warmup]),
            samples=tuple(rounds.counted(strategy.name)),
        )

    def run_memory_passes(self, tell: Progress) -> None:
        """One pass a strategy; what the engine warns of is noted once."""
        workspace = self.device.backend.sees_kernel_memory and tracemalloc_is_exact()
        with engine_warnings() as told:
            try:
                for done, strategy in enumerate(list(self.strategies)):
                    tell("memory", done, len(self.strategies))
                    self._run_memory_pass(strategy, workspace)
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
        from ckptcli.verify.differences import TOLERANCE, scalar_difference

        backend = self.device.backend
        try:
            with told_as_failure(backend, self._first(), lambda: "the finite difference"):
                found = scalar_difference(self.workload, backend)
        except PassOutOfMemory as error:
            self.notes.append(f"no finite difference of the loss: {error.failures[0].message}")
            return
        if found.scatter > TOLERANCE:
            word = "is only as good as that" if found.is_usable else "cannot be used"
            self.notes.append(
                f"the finite difference of the loss {word}: its two steps are {found.scatter:.1e} "
                "apart"
            )
        if not found.is_usable:
            return
        self.passes = [
            replace(p, outcome=replace(p.outcome, finite_difference=found.difference))
            for p in self.passes
        ]

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

    def _first(self) -> str:
        """What the others are compared with: the reference, else `none`, else the first."""
        names = [strategy.name for strategy in self.strategies]
        return next((n for n in (self.reference, "none") if n in names), None) or names[0]

    def _run_memory_pass(self, strategy: Strategy, workspace: bool) -> None:
        try:
            self.passes.append(memory_pass(self.workload, self.device, strategy, workspace))
            return
        except PassOutOfMemory as error:
            failure = error.failures[0]
        self._leave_out(failure)

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
            if peer.record.strategy == failure.strategy and peer.network is not None
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
            names = [strategy.name for strategy in self.strategies]
            if self.stopped is not None:
                empty: dict[str, list[Sample]] = {name: [] for name in names}
                return Rounds(empty, self.plan.warmup, self.stopped, interrupted=True)
            try:
                return self._run_rounds(tell, finished)
            except PassOutOfMemory as error:
                failure = error.failures[0]
            self._leave_out(failure)

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


def profile(
    workload: Workload | str,
    strategies: Sequence[Strategy | str] = ("none", "balanced"),
    *,
    reference: str | None = None,
    backend: Backend | str = "numpy",
    engines: Sequence[Engine] = (),
    plan: Plan | None = None,
    threshold: float = 0.02,
    config: dict[str, object] | None = None,
    progress: Progress | None = None,
    finished: Callable[[RunRecord], None] | None = None,
) -> RunRecord:
    """Profile `workload` under each strategy.

    Args:
        workload: what to run, or its name as on the command line.
        strategies: at least one, or their names; the order is that of the record.
        reference: the name of the strategy that was added only to compare with.
        backend: the array library and its device, or its name for its first device.
        engines: other libraries to run every strategy in too, from `ckptcli.peers.base`.
        plan: how many rounds to time; by default until the intervals are narrow.
        threshold: a time ratio within this of 1 is `same`.
        config: settings to keep in the record.
        progress: told how far the profile is, never during a timed sample.
        finished: gets the record so far after each complete round, marked partial.

    Ctrl-C during the timed rounds gives a record with the rounds that are complete, marked partial.

    Raises:
        UnknownNameError: a name that no registry has.
        UsageError: no strategy, several cases, or a workload that the engines cannot run.
        PassOutOfMemory: no strategy fits; one that does not is left out and told in `failures`.
    """
    chosen = [parse_strategy(s) if isinstance(s, str) else s for s in strategies]
    if not chosen:
        raise UsageError("no strategy to profile", "name at least one")
    job = _Profile(
        workload=_one_workload(workload) if isinstance(workload, str) else workload,
        strategies=chosen,
        device=Device(open_backend(backend) if isinstance(backend, str) else backend),
        reference=reference,
        plan=plan or Plan(),
        threshold=threshold,
        config=config or {},
        machine=read_machine(),
        engines=engines,
    )
    check_engines(engines, job.workload, job.device.backend)
    tell = progress or silent
    before = read_load()
    with job.device.backend.quiet():
        job.run_memory_passes(tell)
        job.tell_spread()
        rounds = job.run_rounds(tell, finished)
    if rounds.interrupted:
        done = len(rounds.counted(job.strategies[0].name))
        job.notes.append(f"{rounds.stopped}: the figures are partial, from {done} complete rounds")
    record = job.record(rounds, rounds.interrupted)
    return replace(record, warnings=(*record.warnings, *stability_warnings(record, before)))


def check_engines(engines: Sequence[Engine], workload: Workload, backend: Backend) -> None:
    """Refuse engines that cannot run the workload beside the backend; without any, load nothing.

    Raises:
        UsageError: one of them cannot.
    """
    if engines:
        from ckptcli.profiling.peer_passes import check_peers

        check_peers(engines, workload, backend)


def _one_workload(text: str) -> Workload:
    workloads = open_workloads(text, WorkloadOptions())
    if len(workloads) > 1:
        raise UsageError(f"`{text}` holds {len(workloads)} cases", f"name one, `{text}#0`")
    return workloads[0]


def silent(phase: str, done: int, total: int) -> None:
    """Progress that nobody sees."""
    del phase, done, total
