"""The laws of a sweep: of each strategy the bytes of the ledger, exactly, and the times.

Invariants: laws are of points that differ in whole numbers alone; what differs in a word or a
fraction is told apart first. Times of several machines have none unless that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ckptcli.measure.point import shown_name
from ckptcli.measure.row import Row
from ckptcli.sweep.laws.polynomial import Place, Recovered, recovered
from ckptcli.sweep.laws.power import PowerLaw, crossing, fitted
from ckptcli.sweep.result import PointResult, SweepResult, shown

METRICS = ("ledger_peak_bytes", "saved_bytes")
FEWEST = 3
"""Values of a size; two are on a line whatever they are."""

FAR = 16
"""How many times beyond the points two times may cross for that to be told."""


@dataclass(frozen=True, slots=True)
class ByteLaw:
    """What the bytes of one strategy follow.

    Attributes:
        metric: one of `METRICS`.
        strategy: how the row is called.
        where: the places that it is about, as conditions: `layers >= 2`, `dtype = float32`.
        names: the variables.
        found: the polynomial; None where there is none.
        places: how many places were looked at.
    """

    metric: str
    strategy: str
    where: Sequence[str]
    names: Sequence[str]
    found: Recovered | None
    places: int


@dataclass(frozen=True, slots=True)
class TimeLaw:
    """What the time of one strategy follows, on one machine; `where` as of `ByteLaw`."""

    strategy: str
    where: Sequence[str]
    law: PowerLaw


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the times of two strategies are the same, by law.

    Attributes:
        slower_above, other: the strategies, the first the slower one above `value`.
        name, value: the variable, and where it is then.
        is_extrapolated: whether that lies outside the points.
    """

    slower_above: str
    other: str
    where: Sequence[str]
    name: str
    value: float
    is_extrapolated: bool


@dataclass(frozen=True, slots=True)
class Laws:
    """All of a sweep."""

    of_bytes: Sequence[ByteLaw] = ()
    of_times: Sequence[TimeLaw] = ()
    crossovers: Sequence[Crossover] = ()


def laws_of(sweep: SweepResult, any_machine: bool = False) -> Laws:
    """The laws that the points show; none without an axis of whole numbers.

    `any_machine` is whether times of several machines may have one.
    """
    measured = sweep.with_status("measured")
    numbers = [a for a in sweep.axes if all(isinstance(p.point[a], int) for p in measured)]
    names = [a for a in numbers if len({p.point[a] for p in measured}) > 1]
    if not names:
        return Laws()
    others = [axis for axis in sweep.axes if axis not in numbers]
    groups = list(_groups(measured, others))
    timed = [(w, ps) for w, ps in groups if any_machine or len({p.machine for p in ps}) == 1]
    times = [law for where, points in timed for law in _times(points, names, where)]
    return Laws(
        [law for where, points in groups for law in _bytes(points, names, where)],
        times,
        list(_crossovers(times)),
    )


def _groups(
    points: Sequence[PointResult], axes: Sequence[str]
) -> Iterator[tuple[list[str], list[PointResult]]]:
    """The points that have the same values on these axes, and what these are."""
    found: dict[tuple[str, ...], list[PointResult]] = {}
    for point in points:
        key = tuple(f"{shown_name(axis)} = {shown(point.point[axis])}" for axis in axes)
        found.setdefault(key, []).append(point)
    yield from ((list(key), members) for key, members in found.items())


def _rows(points: Sequence[PointResult]) -> dict[str, list[tuple[PointResult, Row]]]:
    found: dict[str, list[tuple[PointResult, Row]]] = {}
    for point in points:
        for name, row in point.rows().items():
            found.setdefault(name, []).append((point, row))
    return found


def _bytes(
    points: Sequence[PointResult], names: Sequence[str], where: Sequence[str]
) -> Iterator[ByteLaw]:
    for strategy, rows in _rows(points).items():
        for metric in METRICS:
            known = {
                tuple(point.point[name] for name in names): count
                for point, row in rows
                if (count := getattr(row.memory, metric, None)) is not None
            }
            if any(len(set(values)) >= FEWEST for values in zip(*known)):
                for more, kept, found in byte_laws(names, known):
                    yield ByteLaw(metric, strategy, [*where, *more], kept, found, len(known))


Found = tuple[list[str], Sequence[str], Recovered | None]
"""Where a law holds, its variables, and what it is."""


def byte_laws(names: Sequence[str], known: Mapping[Place, int]) -> list[Found]:
    """One law for all places; else one from some value of a variable on; else one for each value of
    a variable; else one entry without a law.
    """
    whole = recovered(names, known)
    if whole is not None:
        return [([], names, whole)]
    return _from_some_value(names, known) or _by_value(names, known) or [([], names, None)]


def _from_some_value(names: Sequence[str], known: Mapping[Place, int]) -> list[Found]:
    """Without the smallest values of one variable, of which at least half stay, and two: one value
    tells nothing of those beyond it.
    """
    for position, name in enumerate(names):
        values = sorted({place[position] for place in known})
        for least in values[1 : min(len(values) // 2 + 1, len(values) - 1)]:
            kept = {place: count for place, count in known.items() if place[position] >= least}
            found = recovered(names, kept)
            if found is not None:
                return [([f"{shown_name(name)} >= {least}"], names, found)]
    return []


def _by_value(names: Sequence[str], known: Mapping[Place, int]) -> list[Found]:
    """A law in the other variables for each value of the last variable that allows it."""
    for position, name in reversed(list(enumerate(names))) if len(names) > 1 else ():
        others = [other for other in names if other != name]
        found: list[Found] = []
        for value in sorted({place[position] for place in known}):
            kept = {
                (*place[:position], *place[position + 1 :]): count
                for place, count in known.items()
                if place[position] == value
            }
            law = recovered(others, kept)
            if law is None:
                break
            found.append(([f"{shown_name(name)} = {value}"], others, law))
        else:
            return found
    return []


def _times(
    points: Sequence[PointResult], names: Sequence[str], where: Sequence[str]
) -> Iterator[TimeLaw]:
    for strategy, rows in _rows(points).items():
        known = {
            tuple(float(point.point[name]) for name in names): time_s
            for point, row in rows
            if (time_s := row.median_s("total")) is not None
        }
        law = fitted(names, known)
        if law is not None:
            yield TimeLaw(strategy, where, law)


def _crossovers(laws: Sequence[TimeLaw]) -> Iterator[Crossover]:
    told = [law for law in laws if law.law.is_told]
    for first, second in combinations(told, 2):
        if (first.where, first.law.names) == (second.where, second.law.names):
            yield from _meetings(first, second)


def _meetings(first: TimeLaw, second: TimeLaw) -> Iterator[Crossover]:
    """Over the variable in which the laws differ most, at the smallest and at the largest values of
    the others; none far from the points, where a law says nothing.
    """
    names, ends = first.law.names, first.law.ends
    apart = [abs(a - b) for a, b in zip(first.law.exponents, second.law.exponents)]
    variable = apart.index(max(apart))
    others = [sorted(set(pair)) for place, pair in enumerate(ends) if place != variable]
    other_names = [name for name in names if name != names[variable]]
    low, high = ends[variable]
    grow = [law.law.exponents[variable] for law in (first, second)]
    steeper, other = (first, second) if grow[0] > grow[1] else (second, first)
    for values in product(*others):
        at = dict(zip(other_names, values))
        value = crossing(first.law, second.law, variable, at)
        if value is None or not max(1, low / FAR) <= value <= high * FAR:
            continue
        where = [*first.where, *(f"{shown_name(name)} = {v:g}" for name, v in at.items())]
        yield Crossover(
            steeper.strategy,
            other.strategy,
            where,
            names[variable],
            value,
            not low <= value <= high,
        )
