"""Pictures of sweeps: their geometry, and files that are what their names say."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from functools import cache
from itertools import pairwise

import pytest

from ckptcli.errors import UsageError
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.report.drawing.lines import panels_svg
from ckptcli.report.screen import Screen
from ckptcli.report.sweep_chart import panels
from ckptcli.report.sweep_console import render_sweep
from ckptcli.report.sweep_files import sweep_exporter_for
from ckptcli.report.sweep_plot_text import plot_lines
from ckptcli.report.swept import Swept
from ckptcli.sweep.laws.of_sweep import Laws, laws_of
from ckptcli.sweep.result import PointResult, SweepResult
from ckptcli.workloads.silu import SiluWorkload

SIZES, LAYERS = (8, 16, 24, 32), (2, 3, 4)
NAMES = ("none", "remat", "balanced")


@cache
def record(layers: int, n: int, names: tuple[str, ...] = NAMES) -> RunRecord:
    return profile(SiluWorkload(layers, n), names, plan=Plan(reps=0, warmup=0))


def sweep(reason: str = "it broke") -> SweepResult:
    """Of two axes, one point failed."""
    points = [
        PointResult(f"{k}-{n}", {"layers": k, "n": n}, record(k, n)) for k in LAYERS for n in SIZES
    ]
    failed = PointResult("5-8", {"layers": 5, "n": 8}, None, reason, "host")
    return SweepResult("silu, n = 8..32:x2", ("layers", "n"), [*points, failed])


def test_a_line_has_the_figures_of_its_strategy() -> None:
    found = panels(sweep())
    assert [panel.title for panel in found] == [f"peak, layers = {k}" for k in LAYERS]
    for panel, layers in zip(found, LAYERS):
        assert panel.across == "n"
        assert [line.name for line in panel.lines] == list(NAMES)
        for line in panel.lines:
            rows = [record(layers, n) for n in SIZES]
            peaks = [
                next(r for r in rec.rows if r.strategy == line.name).peak_bytes for rec in rows
            ]
            assert line.points == list(zip(map(float, SIZES), map(float, filter(None, peaks))))


def test_titles_are_wider_than_their_tables() -> None:
    """A table of one narrow column would break `recomputed`."""
    points = [PointResult(str(n), {"n": n}, record(2, n, ("none",))) for n in SIZES]
    one = SweepResult("silu", ("n",), points)
    lines = render_sweep(one, Laws(), Screen(width=30), quiet=True).splitlines()
    assert {"peak", "saved for backward", "recomputed"} <= set(lines)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_shows_every_point(width: int) -> None:
    panel, *_ = panels(sweep())
    title, *rows, axis, sizes, legend = plot_lines(panel, width)
    assert title == "peak, layers = 2"
    assert max(map(len, (title, *rows, axis, sizes))) <= width
    cells = "".join(row.partition("|")[2] for row in rows)
    assert cells.count("A") + cells.count("*") >= len(SIZES)
    assert sizes.split() == [str(n) for n in SIZES]
    several = ", * several" if "*" in cells else ""
    assert legend.endswith(f"n; A none, B remat, C balanced{several}")
    assert [rows[0].strip()[:8], rows[-1].strip()[:5]] == ["48.0 KiB", "2.0 K"]


def test_ticks_are_powers_between_the_ends() -> None:
    panel, *_ = panels(sweep())
    _, _, low, high = panel.ends
    assert all(low <= figure <= high for figure in panel.figures)
    assert all(b / a == panel.base for a, b in pairwise(panel.figures))
    assert all(math.log(figure, panel.base).is_integer() for figure in panel.figures)


def test_points_without_a_common_size_have_no_lines() -> None:
    one = SweepResult("silu", ("n",), [PointResult("a", {"n": 8}, record(2, 8))])
    assert panels(one) == []
    words = SweepResult("silu", ("dtype",), [PointResult("a", {"dtype": "x"}, record(2, 8))])
    assert panels(words) == []
    with pytest.raises(UsageError, match="no two points differ in one"):
        sweep_exporter_for("s.svg", None).render(Swept(words, laws_of(words)))


def test_the_files_are_what_they_are_called() -> None:
    whole = sweep("<script>alert(1)</script>")
    swept = Swept(whole, laws_of(whole))
    svg = sweep_exporter_for("s.svg", None).render(swept)
    assert isinstance(svg, str)
    root = ET.fromstring(svg)
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(LAYERS) * len(NAMES)
    assert svg == panels_svg(panels(whole)) + "\n"
    page = sweep_exporter_for("s.html", None).render(swept)
    assert isinstance(page, str)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "8 layers n^2" in page


@pytest.mark.slow
def test_a_png_is_one() -> None:
    pytest.importorskip("matplotlib")
    whole = sweep()
    content = sweep_exporter_for("s.png", None).render(Swept(whole, laws_of(whole)))
    assert isinstance(content, bytes)
    assert content.startswith(b"\x89PNG\r\n")
