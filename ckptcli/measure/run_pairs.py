"""The rows that two saved runs have in common.

A program is what its settings say, whether its run had others or not: `-l 8` and `-l 4,8` have one
in common.

Invariant: both rows of a pair are of one strategy, one engine and one program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ckptcli.errors import UsageError
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row

Pair: TypeAlias = tuple[Row, Row]
"""A strategy of one engine in the base and in the new run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which the two runs differ; None is what a run does not have."""

    field: str
    base: object
    new: object

    def __str__(self) -> str:
        if self.base is None or self.new is None:
            base, new = _named(self.base), _named(self.new)
            return f"{self.field} is {base} in the base, {new} in the other"
        return f"{self.field} is `{self.base}` and `{self.new}`"


def _named(value: object) -> str:
    return "not set" if value is None else f"`{value}`"


def refuse_other_workload(base: RunRecord, new: RunRecord, varying: Sequence[str]) -> None:
    """Refuse runs that differ in what varies in neither. What follows from what varies, as does the
    batch from n, is looked at pair by pair.

    Raises:
        UsageError: they differ.
    """
    left_out = {"title", *varying, *_following(base), *_following(new)}
    own = ({"device": run.device, **run.workload} for run in (base, new))
    _refuse(*({name: known[name] for name in known if name not in left_out} for known in own))


def _following(record: RunRecord) -> set[str]:
    """The settings that some programs of a run have and not all have alike."""
    return {name for program in record.programs for name in program.workload} - {*record.workload}


def _refuse(base: Mapping[str, object], new: Mapping[str, object]) -> None:
    if found := differences(base, new):
        raise UsageError(
            f"the runs are of different workloads: {', '.join(map(str, found))}",
            "compare runs of one workload on one device",
        )


def differences(base: Mapping[str, object], new: Mapping[str, object]) -> list[Difference]:
    """The keys that do not have one value in both."""
    return [
        Difference(field, base.get(field), new.get(field))
        for field in dict.fromkeys([*base, *new])
        if base.get(field) != new.get(field)
    ]


def figured(record: RunRecord) -> list[Row]:
    """The rows that have figures."""
    return [row for row in record.rows if row.reason is None]


def place_of(row: Row, record: RunRecord, varying: Sequence[str]) -> dict[str, float]:
    """Where the row's program stands in what varies in either run, as far as it is known."""
    known = {**record.workload_of(row), **row.point}
    places = ((name, known.get(name)) for name in varying)
    return {name: value for name, value in places if isinstance(value, int | float)}


def pairs_of(base: RunRecord, new: RunRecord, varying: Sequence[str]) -> list[Pair]:
    """The rows that both have, in the order of `new`.

    Raises:
        UsageError: none, or programs at one point that are not the same.
    """
    known = {_key(row, base, varying): row for row in figured(base)}
    found = [(known.get(_key(row, new, varying)), row) for row in figured(new)]
    pairs = [(was, row) for was, row in found if was is not None]
    for was, row in pairs:
        own = (base.workload_of(was), new.workload_of(row))
        _refuse(*({**workload, "title": None} for workload in own))
    if not pairs:
        named = [", ".join(map(run.label, figured(run))) or "none" for run in (base, new)]
        raise UsageError(
            f"no strategy is in both runs: the base has {named[0]}, the other {named[1]}",
            "run both with the same --strategy, and with a value in common where one is a list"
            if varying
            else "run both with the same --strategy",
        )
    return pairs


def _key(row: Row, record: RunRecord, varying: Sequence[str]) -> tuple[object, ...]:
    return (*row.key, *place_of(row, record, varying).items())
