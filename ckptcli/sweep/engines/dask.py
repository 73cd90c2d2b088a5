"""Points on the workers of Dask: those of a scheduler that runs, else of a LocalCluster.

A timed point asks for the resource `measure`, of which a host has one, so that no two are timed
there at once; points without times ask for none. Source: Dask.distributed, "Worker Resources".

Invariant: what a worker measures comes back to the command, which alone keeps it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ckptcli.errors import CkptError, MissingLibraryError, UsageError
from ckptcli.sweep.engines.base import Outcomes, Request
from ckptcli.sweep.engines.local import cores
from ckptcli.sweep.measuring import measure_point
from ckptcli.sweep.outcome import Outcome
from ckptcli.sweep.tasks import Task
from ckptcli.units import count

RESOURCE = "measure"
CONNECT_S = 10.0


class DaskEngine:
    """See `Engine`."""

    def __init__(self, request: Request) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingLibraryError(
                "--on dask needs distributed, which is not installed",
                "pip install 'ckptcli[sweep]'",
            ) from error
        self._distributed: Any = distributed
        self._request = request

    def outcomes(self, tasks: Sequence[Task]) -> Outcomes:
        with _silent(), self._client() as client:
            resources = None if self._request.memory_only else {RESOURCE: 1}
            futures = {
                client.submit(
                    measure_point,
                    task.words,
                    task.folder,
                    key=f"ckpt-{task.key}",
                    pure=False,
                    resources=resources,
                ): task
                for task in tasks
            }
            left = len(tasks)
            for future in self._distributed.as_completed(futures):
                yield futures[future], self._outcome(future, left)
                left -= 1

    def _outcome(self, future: Any, left: int) -> Outcome:
        """What a future holds; a task that its workers do not survive has failed.

        Raises:
            CkptError: the scheduler is gone.
        """
        if future.status == "finished":
            try:
                found: Outcome = future.result(timeout=CONNECT_S)
                return found
            except (OSError, self._distributed.TimeoutError, self._distributed.CancelledError):
                raise self._gone(left) from None
        if future.status == "error":
            error = future.exception()
            return Outcome(None, f"its worker failed: {type(error).__name__}: {error}", "")
        raise self._gone(left)

    def _gone(self, left: int) -> CkptError:
        return CkptError(
            f"the scheduler of Dask is gone before {count(left, 'point')}",
            "start it again and repeat the command: what is kept is not measured again",
        )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self._request.scheduler is None:
            with self._cluster() as cluster, self._distributed.Client(cluster) as client:
                yield client
            return
        try:
            client = self._distributed.Client(self._request.scheduler, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--scheduler `{self._request.scheduler}` does not answer: {error}",
                "give the address that `dask scheduler` prints, such as tcp://host:8786",
            ) from None
        with client:
            self._check_workers(client)
            yield client

    def _cluster(self) -> Any:
        """One worker that measures, or one a core where nothing is timed."""
        at_once = cores() if self._request.memory_only else 1
        return self._distributed.LocalCluster(
            n_workers=at_once,
            threads_per_worker=1,
            resources={RESOURCE: 1},
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )

    def _check_workers(self, client: Any) -> None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise UsageError(
                f"the scheduler `{self._request.scheduler}` has no worker",
                f"start some: dask worker ADDRESS --nthreads 1 --resources {RESOURCE}=1",
            )
        if not self._request.memory_only and not any(w["resources"].get(RESOURCE) for w in workers):
            raise UsageError(
                f"no worker has the resource `{RESOURCE}`, by which one point is timed at a time",
                f"start one a host with --resources {RESOURCE}=1, or use --memory-only",
            )


@contextmanager
def _silent() -> Iterator[None]:
    """Inside, nothing is logged: Dask and Tornado tell what the command tells itself, and more."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


ENGINE = DaskEngine
