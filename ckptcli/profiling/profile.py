"""`profile`: the main job. Composes workload, engine, ledger and clock into a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.measure.machine import Accelerator, Machine, read_machine
from ckptcli.measure.origin import read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.stability import Load, read_load, stability_warnings
from ckptcli.options.measuring import THRESHOLD
from ckptcli.options.workload import WorkloadOptions
from ckptcli.profiling.job import Job, Progress
from ckptcli.workloads.base import Workload
from ckptcli.workloads.registry import open_workloads

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine


def profile(
    workload: Workload | str,
    strategies: Sequence[Strategy | str] = ("none", "balanced"),
    *,
    reference: str | None = None,
    backend: Backend | str = "numpy",
    engines: Sequence[Engine] = (),
    plan: Plan | None = None,
    threshold: float = THRESHOLD,
    limit_bytes: int | None = None,
    config: dict[str, object] | None = None,
    command: Sequence[str] = (),
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
        limit_bytes: a strategy whose peak is above this does not fit; None for no limit.
        config: settings to keep in the record.
        command: the command line to keep in the record.
        progress: told how far the profile is, never during a timed sample.
        finished: gets the record so far after each memory pass and each complete round, marked
            partial.

    Ctrl-C during the timed rounds gives a record with the rounds that are complete, marked partial.

    Raises:
        UnknownNameError: a name that no registry has.
        UsageError: no strategy, several cases, or a workload that the engines cannot run.
        PassOutOfMemory: no strategy fits; one that does not is left out and told in `failures`.
    """
    before = read_load()
    chosen = [parse_strategy(s) if isinstance(s, str) else s for s in strategies]
    if not chosen:
        raise UsageError("no strategy to profile", "name at least one")
    device = Device(open_backend(backend) if isinstance(backend, str) else backend)
    job = Job(
        workload=_one_workload(workload) if isinstance(workload, str) else workload,
        strategies=chosen,
        device=device,
        reference=reference,
        plan=plan or Plan(),
        threshold=threshold,
        config=config or {},
        machine=machine_of(device.backend),
        origin=read_origin(command),
        engines=engines,
        limit_bytes=limit_bytes,
    )
    record = carried_out(job, progress or silent, finished)
    return with_doubts(record, before, job.waiting())


def carried_out(
    job: Job, tell: Progress, finished: Callable[[RunRecord], None] | None
) -> RunRecord:
    """The record of a job, without what the machine's state says of it.

    Raises:
        UsageError: a workload that the engines cannot run.
        PassOutOfMemory: no strategy fits.
    """
    check_engines(job.engines, job.workload, job.device.backend)

    def passed() -> None:
        if finished is not None:
            finished(job.record(job.no_rounds("nothing is timed so far"), True))

    with job.device.backend.quiet():
        job.run_memory_passes(tell, passed)
        job.tell_spread()
        job.measure_process_peaks(tell)
        rounds = job.run_rounds(tell, finished)
    if rounds.interrupted:
        done = len(rounds.counted(job.strategies[0].name))
        job.notes.append(f"{rounds.stopped}: the figures are partial, from {done} complete rounds")
    return job.record(rounds, rounds.interrupted)


def with_doubts(record: RunRecord, before: Load, waiting: str | None) -> RunRecord:
    """The record with what puts its times in doubt; see `stability_warnings`."""
    return replace(
        record, warnings=(*record.warnings, *stability_warnings(record, before, waiting))
    )


def check_engines(engines: Sequence[Engine], workload: Workload, backend: Backend) -> None:
    """Refuse what engines cannot run beside; without any, nothing of theirs is loaded.

    Raises:
        UsageError: as `ckptcli.profiling.peer_passes.check_peers`.
    """
    if engines:
        from ckptcli.profiling.peer_passes import check_peers

        check_peers(engines, workload, backend)


def machine_of(backend: Backend) -> Machine:
    """The machine, with the device that computes where that is not its processor."""
    facts = backend.accelerator()
    if facts is None:
        return read_machine()
    return replace(
        read_machine(), accelerator=Accelerator(facts.model, facts.memory_bytes, facts.driver)
    )


def _one_workload(text: str) -> Workload:
    workloads = open_workloads(text, WorkloadOptions())
    if len(workloads) > 1:
        raise UsageError(f"`{text}` holds {len(workloads)} cases", f"name one, `{text}#0`")
    return workloads[0]


def silent(phase: str, done: int, total: int) -> None:
    """Progress that nobody sees."""
    del phase, done, total
