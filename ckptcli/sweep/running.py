"""A sweep carried out: what is known is left alone, the rest is measured and kept as it comes."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from ckptcli.measure.origin import read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.sweep.engines.base import Engine
from ckptcli.sweep.result import PointResult
from ckptcli.sweep.store import Store
from ckptcli.sweep.tasks import Task
from ckptcli.version import VERSION

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")

Tell = Callable[[int, int, str], None]
"""Told how many of how many points are done, and what is next and how long it may all take."""


def to_measure(tasks: Sequence[Task], store: Store, retry: bool) -> list[Task]:
    """The points that are not in the store; with `retry` those that failed too."""
    return [task for task in tasks if not store.has(task.key, failures_too=not retry)]


def run_tasks(tasks: Sequence[Task], store: Store, engine: Engine, tell: Tell) -> None:
    """Measure the points and keep each as it comes.

    An interrupt leaves what is kept, and ends what runs.

    Raises:
        CkptError: the engine failed, or the store cannot be written.
    """
    began_s = time.monotonic()
    left = {task.key: task for task in tasks}
    if not tasks:
        return
    tell(0, len(tasks), _next(left))
    with contextlib.closing(engine.outcomes(tasks)) as outcomes:
        for task, outcome in outcomes:
            store.keep(task, outcome)
            del left[task.key]
            done = len(tasks) - len(left)
            rest_s = (time.monotonic() - began_s) / done * len(left)
            tell(done, len(tasks), f"about {rest_s:.0f} s more, {_next(left)}")


def _next(left: Mapping[str, Task]) -> str:
    """The first of those that are not done; it is the one that runs."""
    first = next(iter(left.values()), None)
    return "" if first is None else f"at {PointResult('', first.point, None).title}"


def stale(results: Sequence[PointResult]) -> Iterator[str]:
    """What to say of points that another version or commit measured."""
    records = [point.record for point in results if point.record is not None]
    commit = _short(read_origin().commit)
    for what, now, of in (("version", VERSION, _version), ("commit", commit, _commit)):
        others = [known for record in records if (known := of(record)) not in (now, None)]
        if others and now is not None:
            seen = ", ".join(dict.fromkeys(others))
            yield (
                f"{len(others)} of {len(records)} points were measured at {what} {seen}, this is "
                f"{now}; name another folder to measure them again"
            )


def once(results: Sequence[PointResult]) -> Iterator[str]:
    """The warnings of all points, of those that differ in figures alone the first one."""
    alike: dict[str, list[str]] = {}
    for point in results:
        for text in () if point.record is None else point.record.warnings:
            said = f"{point.title}: {text}" if point.point else text
            alike.setdefault(_FIGURE.sub("#", text), []).append(said)
    for texts in alike.values():
        more = f" (and {len(texts) - 1} alike)" if len(texts) > 1 else ""
        yield f"{texts[0]}{more}"


def _version(record: RunRecord) -> str | None:
    return record.version


def _commit(record: RunRecord) -> str | None:
    return None if record.origin is None else _short(record.origin.commit)


def _short(commit: str | None) -> str | None:
    """As the origin of a run is shown."""
    return None if commit is None else commit[:12]
