"""The result of a sweep, as frozen data: the points in order, each with its record or its failure.

Invariant: nothing is derived here that a record does not have; figures of two points meet in
tables and laws alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ckptcli.measure.point import shown_name, shown_value
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class PointResult:
    """One point.

    Attributes:
        key: its name in a folder.
        point: the value of each axis here, by the option's name.
        record: what was measured; None where nothing was.
        reason: why it failed; None where it did not, or was not reached.
        failed_on: the machine where it failed, if it did.
    """

    key: str
    point: Mapping[str, Any]
    record: RunRecord | None
    reason: str | None = None
    failed_on: str | None = None

    @property
    def status(self) -> str:
        """In one word."""
        if self.record is not None:
            return "measured"
        return "not reached" if self.reason is None else "failed"

    @property
    def host(self) -> str | None:
        """The machine that measured it."""
        if self.record is None or self.record.origin is None:
            return self.failed_on
        return self.record.origin.host

    @property
    def machine(self) -> str | None:
        """What its times belong to: the host, its processor and cores, and what computed beside
        them, since a container is often called as another is.
        """
        if self.record is None:
            return self.failed_on
        known = self.record.machine
        beside = known.accelerator.model if known.accelerator else None
        cores = None if known.cores is None else count(known.cores, "core")
        return ", ".join(part for part in (self.host, known.cpu, cores, beside) if part) or None

    @property
    def load_average(self) -> float | None:
        """How busy the machine was when the point began, in processes."""
        origin = None if self.record is None else self.record.origin
        return None if origin is None else origin.load_average

    @property
    def title(self) -> str:
        """`layers=4 n=64`."""
        return " ".join(f"{shown_name(name)}={shown(v)}" for name, v in self.point.items())

    def rows(self) -> dict[str, Row]:
        """The rows with figures, by how a sweep calls them."""
        record = self.record
        if record is None:
            return {}
        return {record.name_of(row): row for row in record.rows if row.reason is None}

    def missing(self) -> dict[str, str]:
        """Why rows have no figures, by how a sweep calls them."""
        record = self.record
        if record is None:
            return {}
        rows = {record.name_of(row): row.reason for row in record.rows}
        refused = {name: reason for name, reason in rows.items() if reason is not None}
        return {**refused, **{failure.strategy: failure.message for failure in record.failures}}

    def placed(self) -> RunRecord | None:
        """The record whose rows say where they stand, as far as numbers do."""
        if self.record is None:
            return None
        place = {n: v for n, v in self.point.items() if isinstance(v, int | float)}
        rows = [replace(row, point={**place, **row.point}) for row in self.record.rows]
        return replace(self.record, rows=rows)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """All points.

    Attributes:
        title: what was swept over, in words.
        axes: the options that have several values, by their names.
        points: in the order of the sweep.
    """

    title: str
    axes: Sequence[str]
    points: Sequence[PointResult]

    @property
    def names(self) -> list[str]:
        """How the rows of all points are called, in the order in which they come."""
        found = [name for point in self.points for name in (*point.rows(), *point.missing())]
        return list(dict.fromkeys(found))

    @property
    def machines(self) -> dict[str, str]:
        """The machines that measured, in the order in which they come, and how a table calls each:
        by the host, where there is one of that name.
        """
        found = {p.machine: p.host for p in self.points if p.record and p.machine}
        hosts = list(found.values())
        return {
            machine: host if host and hosts.count(host) == 1 else machine
            for machine, host in found.items()
        }

    @property
    def is_timed(self) -> bool:
        """Whether any row has times."""
        return any(row.samples for point in self.points for row in point.rows().values())

    def with_status(self, status: str) -> list[PointResult]:
        """The points of that status."""
        return [point for point in self.points if point.status == status]


def shown(value: Any) -> str:
    """The value of an axis as text."""
    return value if isinstance(value, str) else shown_value(value)
