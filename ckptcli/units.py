"""Bytes, seconds and ratios as text.

Machine output keeps SI base units; only the screen uses these. An unknown figure prints `n/a`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

UNKNOWN = "n/a"

MOST_APART = 1000.0
"""How many times the least the largest time of a column may be, for both to have one unit."""

_DECIMAL = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL_NUMBER = r"-?[0-9]{1,1000}(\.[0-9]{0,100})?(e[+-]?[0-9]{1,3})?"
_DURATIONS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

SIZE_UNITS = {
    **{unit: 1000.0**power for power, unit in enumerate(_DECIMAL)},
    **{unit: 1024.0**power for power, unit in enumerate(_BINARY)},
}
"""What a size may end with, and how many bytes it is."""

DURATION_UNITS = {**{name: unit_s for unit_s, name in _DURATIONS}, "us": 1e-6}
"""What a time may end with, and how many seconds it is."""


def size(size_bytes: int | None) -> str:
    """The largest binary unit that gives 1 or more, `4.0 KiB`; beyond these `1e+30 B`."""
    if size_bytes is None:
        return UNKNOWN
    if abs(size_bytes) >= 1024 ** len(_BINARY):
        return _beyond(size_bytes)
    power = 0
    while power < len(_BINARY) - 1 and abs(size_bytes) >= 1024 ** (power + 1):
        power += 1
    if power == 0:
        return f"{size_bytes} B"
    return f"{size_bytes / 1024**power:.1f} {_BINARY[power]}"


def _beyond(size_bytes: int) -> str:
    """Three digits at most and a power of ten, of what no float may hold too."""
    from decimal import Decimal  # on first use, which is seldom

    return f"{Decimal(f'{Decimal(size_bytes):.2e}').normalize():e} B"


def exact_size(size_bytes: int | None) -> str:
    """The same, and what its rounding hides: `132.0 KiB (135172 bytes)`, `44 B`."""
    known = size(size_bytes)
    return (
        known
        if size_bytes is None or known == f"{size_bytes} B"
        else f"{known} ({size_bytes} bytes)"
    )


def part(part_bytes: int, whole_bytes: int) -> str:
    """`89.2 of 98.9 MiB`; each with its unit where these differ."""
    known, whole = size(part_bytes), size(whole_bytes)
    number, _, unit = known.partition(" ")
    return f"{number if whole.endswith(f' {unit}') else known} of {whole}"


def duration(time_s: float | None, scale: TimeScale | None = None) -> str:
    """Two decimals in the largest unit that gives 1 or more, as Rust prints it, `6.37ms`.

    With a scale in its unit and with its decimals.
    """
    if time_s is None or not math.isfinite(time_s):
        return UNKNOWN
    known = scale or TimeScale(*_unit_of(time_s), 2)
    return f"{known.number(time_s)}{known.name}"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The unit and the decimals that times of one column or one line have in common."""

    unit_s: float
    name: str
    decimals: int

    def number(self, time_s: float) -> str:
        return f"{time_s / self.unit_s:.{self.decimals}f}"


def time_scale(
    times_s: Iterable[float | None], half_widths_s: Iterable[float] = ()
) -> TimeScale | None:
    """The unit of the largest time, with decimals for the narrowest interval or the least time.

    Two digits of half an interval, three of a time where there is none, two decimals at least. None
    where times lie too far apart for one unit, or there are none.
    """
    known = [time_s for time_s in times_s if time_s is not None and 0.0 < time_s < math.inf]
    if not known or max(known) > MOST_APART * min(known):
        return None
    unit_s, name = _unit_of(max(known))
    finest_s = min((width for width in half_widths_s if width > 0.0), default=None)
    if finest_s is None:
        return TimeScale(unit_s, name, min(4, max(2, 2 - _digits(min(known) / unit_s))))
    return TimeScale(unit_s, name, min(4, max(0, 1 - _digits(finest_s / unit_s))))


def _unit_of(time_s: float) -> tuple[float, str]:
    return next((unit for unit in _DURATIONS if time_s >= unit[0]), _DURATIONS[-1])


def _digits(value: float) -> int:
    """The place of its first digit: 0 of 1 to 9.9, -1 of 0.1."""
    return math.floor(math.log10(value))


def count(number: float, noun: str, figure: str | None = None) -> str:
    """`1 round`, `2 processes`, `11 units of memory`; the figure where it is written otherwise."""
    return f"{number if figure is None else figure} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """`rounds`, `processes`; of a phrase what stands before `of` or `above`, `units of memory`."""
    head = re.split(" (?:of|above) ", noun, maxsplit=1)[0]
    return f"{head}{'es' if head.endswith('s') else 's'}{noun[len(head) :]}"


def are(number: int) -> str:
    """What goes with so many: `1 of 3 is`, `2 of 3 are`."""
    return "is" if number == 1 else "are"


def some(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def threads(number: int | None) -> str:
    """`1 thread`, `2 threads`, `n/a threads`."""
    return f"{UNKNOWN} threads" if number is None else count(number, "thread")


def ratio(value: float | None) -> str:
    """A ratio with two decimals, `1.07x`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.2f}x"


def percent(share: float, decimals: int | None = None) -> str:
    """A share of 1 as `12.5 %`: with so many decimals, or three digits."""
    value = 100.0 * share
    if decimals is not None:
        return f"{value:.{decimals}f} %"
    return f"{value:,.0f} %" if abs(value) >= 999.5 else f"{value:.3g} %"


def change(now_bytes: int, before_bytes: int) -> str:
    """`80.0 MiB instead of 132.3 MiB (-40 %)`."""
    if now_bytes == before_bytes:
        return f"the same {size(now_bytes)}"
    share = f" ({_percent(now_bytes / before_bytes)} %)" if before_bytes else ""
    return f"{size(now_bytes)} instead of {size(before_bytes)}{share}"


def _percent(ratio: float) -> str:
    """A change in percent: whole, but for one that would read as nothing or as everything."""
    percent = (ratio - 1.0) * 100.0
    if abs(percent) < 0.05:
        return "under 0.1"
    if abs(percent) < 0.5 or (ratio > 0.0 and percent < -99.5):
        return f"{max(percent, -99.9):+.1f}" if ratio else "-100"
    return f"{percent:+.0f}"


def interval(
    middle_s: float, low_s: float | None, high_s: float | None, scale: TimeScale | None = None
) -> str:
    """A time with its interval in the same unit, `136.3ms [135.9 136.8]`; without one, `[n/a]`.

    Two digits of half of it decide the decimals, where no scale does.
    """
    if low_s is None or high_s is None:
        return f"{duration(middle_s, scale)} [{UNKNOWN}]"
    own = scale or time_scale([middle_s], [(high_s - low_s) / 2.0])
    ends = "n/a" if own is None else f"{own.number(low_s)} {own.number(high_s)}"
    return f"{duration(middle_s, own)} [{ends}]"


def parse_size(text: str) -> float:
    """Bytes from `64MiB`, `1.5 GB`, `4096` or `4096B`.

    Raises:
        ValueError: not a number with one of `SIZE_UNITS`.
    """
    return _parsed(text, SIZE_UNITS)


def parse_whole_bytes(text: str) -> int:
    """The same to the byte, of any size; what is less than a byte is left out.

    Raises:
        ValueError: not a number with one of `SIZE_UNITS`.
    """
    from fractions import Fraction  # on first use: a help text has no use for it

    stripped = text.strip().lower()
    names = sorted(SIZE_UNITS, key=len, reverse=True)
    unit = next((name for name in names if stripped.endswith(name.lower())), "B")
    number = stripped.removesuffix(unit.lower()).strip()
    if not re.fullmatch(_DECIMAL_NUMBER, number):
        raise ValueError(f"`{text}` is not a size")
    return int(Fraction(number) * int(SIZE_UNITS[unit]))


def parse_duration(text: str) -> float:
    """Seconds from `1.5ms`, `20 us`, `2s` or `2`.

    Raises:
        ValueError: not a number with one of `DURATION_UNITS`.
    """
    return _parsed(text, DURATION_UNITS)


def _parsed(text: str, known: Mapping[str, float]) -> float:
    """A number, times its unit where it has one; case does not matter."""
    stripped = text.strip()
    for unit in sorted(known, key=len, reverse=True):
        if stripped.lower().endswith(unit.lower()):
            return float(stripped[: -len(unit)]) * known[unit]
    return float(stripped)


def durations(times_s: Sequence[float]) -> list[str]:
    """Ascending times in the unit of the last, with the decimals that tell neighbours apart."""
    unit_s, name = _unit_of(times_s[-1])
    step = min(after - before for before, after in pairwise(times_s)) / unit_s
    decimals = min(6, max(0, 1 - _digits(step))) if step > 0.0 else 2
    return [f"{time_s / unit_s:.{decimals}f}{name}" for time_s in times_s]
