"""Carries out an experiment: collector off, what is complete kept if it is stopped."""

from __future__ import annotations

from ckptcli.backends.base import Backend
from ckptcli.errors import CkptError, OutOfMemoryError
from ckptcli.measure.experiment_record import ExperimentRecord
from ckptcli.measure.machine import available_bytes, read_machine
from ckptcli.measure.rounds import collector_off
from ckptcli.units import size
from ckptcli.version import VERSION
from ckptcli.workloads.experiment import Clock, Experiment, Findings, Tell


def check_experiment_fits(experiment: Experiment) -> None:
    """Refuse what certainly does not fit.

    Raises:
        OutOfMemoryError: less memory is available than it needs at least.
    """
    needed, available = experiment.needed_bytes(), available_bytes()
    if available is not None and needed > available:
        raise OutOfMemoryError(
            f"{experiment.title} needs at least {size(needed)}, {size(available)} are available",
            f"{experiment.shrink_hint}, or --no-memory-check",
        )


def carried_out(
    experiment: Experiment, backend: Backend, tell: Tell, clock: Clock | None = None
) -> tuple[ExperimentRecord, CkptError | None]:
    """The record, and the error that ended it early, if one did after the first round.

    The clock is the backend's if none is given.

    Raises:
        CkptError: it failed before a round was complete.
        KeyboardInterrupt: it was stopped before a round was complete.
    """
    findings = Findings()
    stopped, failure = None, None
    try:
        with collector_off():
            experiment.measure(findings, backend, clock or backend.clock(), tell)
    except KeyboardInterrupt as stop:
        if not findings.rounds:
            raise
        stopped = str(stop) or "interrupted"
    except CkptError as error:
        if not findings.rounds:
            raise
        stopped, failure = error.message, error
    record = ExperimentRecord(
        workload=experiment.settings,
        title=experiment.title,
        device=backend.label,
        machine=read_machine(),
        version=VERSION,
        selection=experiment.selection,
        rounds=tuple(findings.rounds),
        facts={fact.name: fact.value for fact in findings.facts},
        sentences=tuple(fact.sentence for fact in findings.facts if fact.sentence),
        wrong=tuple(findings.wrong),
        stopped=stopped,
    )
    return record, failure
