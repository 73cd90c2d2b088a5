"""Points in processes of this machine: one at a time where times are taken, else one a core."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from ckptcli.sweep.engines.base import Outcomes, Request
from ckptcli.sweep.measuring import Running, measure_point
from ckptcli.sweep.tasks import Task


class LocalEngine:
    """See `Engine`. A thread waits for each process."""

    def __init__(self, request: Request) -> None:
        self._at_once = cores() if request.memory_only else 1

    def outcomes(self, tasks: Sequence[Task]) -> Outcomes:
        running = Running()
        pool = ThreadPoolExecutor(self._at_once)
        try:
            futures = {
                pool.submit(measure_point, task.words, task.folder, running): task for task in tasks
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            running.stop()
            pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


ENGINE = LocalEngine
