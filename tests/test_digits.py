"""Times that stand together have one unit and one count of decimals."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from ckptcli import units
from ckptcli.measure.statistics import Estimate
from ckptcli.report import readings, run_table
from tests.records import balanced_record, none_record, run_record

TIME = re.compile(r"\b\d+(?:\.(\d+))?(ns|µs|ms|s)\b")


def forms(text: str) -> set[tuple[int, str]]:
    """The decimals and the unit of each time in a text."""
    return {(len(found[1] or ""), found[2]) for found in TIME.finditer(text)}


@pytest.mark.parametrize("seed", range(40))
def test_a_scale_tells_times_apart(seed: int) -> None:
    draw = random.Random(seed)
    least = 10 ** draw.uniform(-8, 1)
    times = sorted([least, *(least * 10 ** draw.uniform(0, 2.99) for _ in range(5))])
    half_widths = [draw.uniform(0.001, 0.5) * time_s for time_s in times] if seed % 2 else []
    scale = units.time_scale(times, half_widths)
    assert scale is not None
    texts = [units.duration(time_s, scale) for time_s in times]
    assert len(forms(" ".join(texts))) == 1
    assert 1.0 <= times[-1] / scale.unit_s < 1000.0 or scale.name == "s"
    finest = min(half_widths, default=times[0] / 10)
    step = scale.unit_s * 10.0**-scale.decimals
    assert step <= finest or scale.decimals == 4
    for text, time_s in zip(texts, times):
        assert abs(units.parse_duration(text) - time_s) <= 0.51 * step


def test_what_lies_too_far_apart_has_no_scale() -> None:
    assert units.time_scale([1e-6, 1.1e-3]) is None
    assert units.time_scale([]) is units.time_scale([None, 0.0]) is None
    assert units.duration(1e-6, None) == "1.00µs"


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        (((371e-6, 336e-6, 475e-6), (1.035e-3, 0.926e-3, 1.089e-3)), ["0.371ms", "1.035ms"]),
        (((65.55e-6, None, None), (130.1e-6, None, None)), ["65.55µs", "130.10µs"]),
        (((61.3e-6, None, None), (1.22e-3, None, None)), ["0.0613ms", "1.2200ms"]),
        (((61.3e-6, None, None), (1.22, None, None)), ["61.30µs", "1.22s"]),
        (((0.1363, 0.1359, 0.1368), (0.0999, 0.0899, 0.1099)), ["136.30ms", "99.90ms"]),
    ],
)
def test_a_column_of_times_has_one_form(
    estimates: tuple[tuple[float, float | None, float | None], ...], expected: list[str]
) -> None:
    record = run_record(none_record(), balanced_record())
    rows = []
    for row, (median, low, high) in zip(record.rows, estimates):
        known = Estimate(median, low, high, 0.1, median * 0.9, median * 1.1)
        rows.append(replace(row, times={"forward": known, "backward": known, "total": known}))
    table = run_table.table(replace(record, rows=tuple(rows)))
    column = table.header.index("total")
    assert [row[column].text for row in table.rows] == expected
    for row in rows:
        for line in readings._time_readings(row, record):
            assert len(forms(line)) == 1, line


@pytest.mark.parametrize(
    ("size_bytes", "shown", "exact"),
    [
        (1, "1 B", "1 B"),
        (1023, "1023 B", "1023 B"),
        (135172, "132.0 KiB", "132.0 KiB (135172 bytes)"),
        (2**62, "4.0 EiB", f"4.0 EiB ({2**62} bytes)"),
        (10**30, "1e+30 B", f"1e+30 B ({10**30} bytes)"),
        (10**400, "1e+400 B", f"1e+400 B ({10**400} bytes)"),
    ],
    ids=["one", "the last byte", "KiB", "EiB", "no unit", "no float"],
)
def test_a_size_of_any_magnitude_is_short_and_to_the_byte_where_asked(
    size_bytes: int, shown: str, exact: str
) -> None:
    assert units.size(size_bytes) == shown
    assert units.exact_size(size_bytes) == exact
