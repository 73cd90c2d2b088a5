"""The record of several programs from a record of each.

Invariants: a row is judged among the rows of its own program; nothing of a part is lost, and what
every part says is said once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ckptcli.measure.analysis import analysed
from ckptcli.measure.point import Point, point_text, shown_name
from ckptcli.measure.record import Program, RunRecord


@dataclass(frozen=True, slots=True)
class Part:
    """One program of a run: where it stands, and its record as if it had been run alone."""

    point: Point
    record: RunRecord


def joined(parts: Sequence[Part], workload: dict[str, object]) -> RunRecord:
    """One record of all parts, at least one; `workload` is what `common_workload` made of them.

    It is partial if a part is.
    """
    return analysed(side_by_side(parts, workload))


def side_by_side(parts: Sequence[Part], workload: dict[str, object]) -> RunRecord:
    """The same before it is analysed as a whole: verdicts are those of each program alone."""
    return replace(
        parts[0].record,
        workload=workload,
        stopped="; ".join(_told([(part.point, [part.record.stopped]) for part in parts])),
        partial=any(part.record.partial for part in parts),
        warnings=tuple(_told([(part.point, part.record.warnings) for part in parts])),
        rows=tuple(
            replace(row, point=dict(part.point)) for part in parts for row in part.record.rows
        ),
        failures=tuple(
            replace(failure, point=dict(part.point))
            for part in parts
            for failure in part.record.failures
        ),
        programs=tuple(Program(dict(part.point), part.record.workload) for part in parts),
    )


def common_workload(
    workloads: Sequence[Mapping[str, object]], lists: Mapping[str, object]
) -> dict[str, object]:
    """The settings that all programs have in common, those that are not measured too, and a title
    of these and the lists: the options that vary, as they were given.
    """
    first = workloads[0]
    common = {
        name: value
        for name, value in first.items()
        if name not in lists and all(other.get(name) == value for other in workloads)
    }
    titles = [str(workload["title"]).split(", ") for workload in workloads]
    same = [
        words
        for words in titles[0]
        if all(words in title for title in titles) and _setting(words) not in lists
    ]
    varied = [f"{shown_name(name)} = {value}" for name, value in lists.items()]
    return {**common, "name": first["name"], "title": ", ".join([*same, *varied])}


def _setting(words: str) -> str:
    """The setting that a part of a title is about: `svd eps = 0.1` is about `svd_eps`."""
    return words.partition(" = ")[0].replace(" ", "_")


def _told(texts: Sequence[tuple[Point, Sequence[str]]]) -> Iterator[str]:
    """What every part says, once; then what some say, with whose it is before it."""
    common = [text for text in dict.fromkeys(texts[0][1]) if all(text in said for _, said in texts)]
    yield from common
    for point, said in texts:
        yield from (f"{point_text(point)}: {text}" for text in said if text not in common)
