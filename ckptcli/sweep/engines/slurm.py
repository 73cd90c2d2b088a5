"""Points as an array job of Slurm, through submitit; a task of the array is a point.

A timed point has its node for itself (`--exclusive`), so that no two are timed there at once.
Source: https://github.com/facebookincubator/submitit

Invariant: what a task measures comes back to the command through submitit's files in the folder of
the sweep, which the nodes share; the command alone keeps it.
"""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Sequence
from typing import Any

from ckptcli.errors import MissingLibraryError, UsageError
from ckptcli.sweep.engines.base import Outcomes, Request
from ckptcli.sweep.measuring import measure_point
from ckptcli.sweep.outcome import Outcome
from ckptcli.sweep.tasks import Task

POLL_S = 5.0
FINISHING_S = 60.0
"""What a job may take beyond the point's own --timeout."""

MINUTES = 60
"""Of a job without --timeout and without `--slurm timeout_min=...`."""


class SlurmEngine:
    """See `Engine`. `cluster` is submitit's name of what runs jobs; "local" needs no Slurm."""

    def __init__(self, request: Request, cluster: str = "slurm", poll_s: float = POLL_S) -> None:
        try:
            import submitit
        except ImportError as error:
            raise MissingLibraryError(
                "--on slurm needs submitit, which is not installed", "pip install 'ckptcli[sweep]'"
            ) from error
        if cluster == "slurm" and shutil.which("srun") is None:
            raise UsageError(
                "--on slurm finds no Slurm: there is no `srun` on the path",
                "call it where `sbatch` works, or use --on dask",
            )
        if request.folder is None:
            raise UsageError(
                "--on slurm needs a folder that its nodes share", "name one with --out FOLDER"
            )
        self._submitit: Any = submitit
        self._executor: Any = submitit.AutoExecutor(request.folder / "slurm", cluster=cluster)
        self._poll_s = poll_s
        self._set_parameters(request)

    def _set_parameters(self, request: Request) -> None:
        """As `--slurm` says; what it does not say follows from the points.

        Raises:
            UsageError: a parameter that submitit does not know.
        """
        limit_s = request.timeout_s
        minutes = MINUTES if limit_s is None else math.ceil((limit_s + FINISHING_S) / 60)
        ours = {} if request.memory_only else {"slurm_exclusive": True}
        given = {_parameter(name): value for name, value in request.parameters.items()}
        try:
            self._executor.update_parameters(**{"timeout_min": minutes, **ours, **given})
        except (NameError, TypeError, ValueError) as error:
            told = str(error).splitlines()[0]
            raise UsageError(
                f"--slurm has a parameter that submitit does not take: {told}",
                "give those of sbatch, such as --slurm partition=gpu",
            ) from None

    def outcomes(self, tasks: Sequence[Task]) -> Outcomes:
        with self._executor.batch():
            submitted = [self._executor.submit(measure_point, t.words, t.folder) for t in tasks]
        jobs = {job.job_id: (job, task) for job, task in zip(submitted, tasks)}
        try:
            for job in self._submitit.helpers.as_completed(submitted, poll_frequency=self._poll_s):
                _, task = jobs.pop(job.job_id)
                yield task, self._outcome(job)
        finally:
            for job, _ in jobs.values():
                with contextlib.suppress(Exception):  # a scheduler that is gone cancels nothing
                    job.cancel(check=False)

    def _outcome(self, job: Any) -> Outcome:
        """What a job left; one that ended without a result has failed."""
        try:
            found: Outcome = job.result()
            return found
        except (self._submitit.core.utils.UncompletedJobError, OSError) as error:
            lines = str(error).strip().splitlines()
            told = next((line for line in reversed(lines) if "Error: " in line), lines[0])
            return Outcome(None, f"its job {job.job_id} left no result: {told}", "")


def _parameter(name: str) -> str:
    """submitit's name: its own are common to all that runs jobs, Slurm's have that prefix."""
    common = ("timeout_min", "nodes", "mem_gb", "cpus_per_task", "gpus_per_node", "name")
    return name if name in common else f"slurm_{name.replace('-', '_')}"


ENGINE = SlurmEngine
