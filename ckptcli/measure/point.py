"""Where one program of a run stands among several: `{"layers": 4}`.

A point has the value of each option that has several, by the option's name; it is empty where a run
has one program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

Point = Mapping[str, float]


def point_text(point: Point) -> str:
    """`layers=4 n=64`; empty for no point."""
    return " ".join(f"{shown_name(name)}={shown_value(value)}" for name, value in point.items())


def beside_point(point: Point, text: str) -> str:
    """`layers=4 none`: what stands at a point; the text alone for no point."""
    return f"{point_text(point)} {text}" if point else text


def shown_name(name: str) -> str:
    """As the command line has it: of an option the long name, `svd-eps`, of a keyword itself."""
    return _long_names().get(name, name)


@cache
def _long_names() -> dict[str, str]:
    from ckptcli.options.listing import options_of
    from ckptcli.options.program import DeviceOptions
    from ckptcli.options.workload import WorkloadOptions

    groups = (WorkloadOptions, DeviceOptions)
    return {option.name: option.key for group in groups for option in options_of(group)}


def shown_value(value: float) -> str:
    """`4`, `0.44`, `1e-12`: every digit that the number has."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
