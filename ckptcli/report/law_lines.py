"""The laws of a sweep as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.measure.point import shown_name
from ckptcli.sweep.laws.of_sweep import ByteLaw, Crossover, Laws, TimeLaw

_NAMES = {"ledger_peak_bytes": "ledger's peak", "saved_bytes": "saved"}


def law_lines(laws: Laws) -> Iterator[str]:
    """A sentence a law: bytes exactly, times as fitted."""
    yield from map(_bytes, laws.of_bytes)
    yield from map(_time, laws.of_times)
    yield from map(_crossover, laws.crossovers)


def _bytes(law: ByteLaw) -> str:
    where = f"{', '.join(law.where)}: " if law.where else ""
    what = f"{law.strategy}: {where}{_NAMES[law.metric]}"
    if law.found is None:
        names = ", ".join(map(shown_name, law.names))
        return f"{what} follows no polynomial in {names} that {law.places} points tell"
    found = law.found
    points, others = units.count(found.made_of, "point"), units.count(found.held_at, "other")
    return f"{what} = {found.polynomial.text} B: from {points}, exact at {others}"


def _time(law: TimeLaw) -> str:
    if not law.law.is_told:
        exponents = law.law.text.partition(" * ")[2]
        return (
            f"{law.strategy}: total time{_at(law.where)} follows no law that these points tell, "
            f"{exponents}: take more points, or more --reps"
        )
    off = units.percent(law.law.largest_residual, 0)
    return f"{law.strategy}: total time{_at(law.where)} about {law.law.text}, off by at most {off}"


def _crossover(found: Crossover) -> str:
    outside = " (extrapolated)" if found.is_extrapolated else ""
    return (
        f"{found.slower_above} takes longer than {found.other}{_at(found.where)} above "
        f"{shown_name(found.name)} = {found.value:.0f}{outside}, by law"
    )


def _at(where: Sequence[str]) -> str:
    return f" at {', '.join(where)}" if where else ""
