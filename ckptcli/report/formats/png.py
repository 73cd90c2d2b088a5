"""The memory timeline as a PNG file, drawn by matplotlib (extra `plot`).

matplotlib is imported when a picture is drawn; that it is there is known before.
"""

from __future__ import annotations

import importlib.util
import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ckptcli.errors import UsageError
from ckptcli.measure.record import RunRecord
from ckptcli.report.charts import (
    MOST_COLUMNS,
    Curve,
    Span,
    byte_ticks,
    common_span,
    curves_of,
    resample,
)
from ckptcli.report.drawing.style import series_color, series_dash
from ckptcli.report.drawing.timeline import highest_text, size_label
from ckptcli.report.formats.base import no_pass, register
from ckptcli.report.surroundings import heading
from ckptcli.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES, PLOT_INCHES, LEGEND_ROW_INCHES = 8.0, 3.6, 0.2
DOTS_PER_INCH = 200
MOST_DOTS = 30_000
"""From top to bottom; the pictures of very many programs have fewer dots per inch."""


@register
class PngExporter:
    """Live bytes over the ops of the pass, a line a strategy, a picture a program."""

    name: ClassVar[str] = "png"
    suffixes: ClassVar[tuple[str, ...]] = (".png",)
    binary: ClassVar[bool] = True
    draws_pass: ClassVar[bool] = True

    def __init__(self) -> None:
        if importlib.util.find_spec("matplotlib") is None:
            raise UsageError("PNG needs matplotlib", "pip install 'ckptcli[plot]'")

    def render(self, record: RunRecord) -> bytes:
        known = [(part, curves) for part in record.parts if (curves := curves_of(part))]
        if not known:
            raise no_pass(".png")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        heights = [PLOT_INCHES + LEGEND_ROW_INCHES * max(2, len(curves)) for _, curves in known]
        height = sum(heights)
        dots = min(DOTS_PER_INCH, MOST_DOTS / height)
        figure = Figure(figsize=(WIDTH_INCHES, height), dpi=dots, layout="constrained")
        FigureCanvasAgg(figure)
        pictures: Any = [figure]
        if len(known) > 1:
            pictures = figure.subfigures(len(known), height_ratios=heights)
        stream = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a name in a script that the font has no letters for
            for picture, (part, curves) in zip(pictures, known):
                _draw(picture.add_subplot(), curves, heading(part))
                picture.legend(fontsize="small", loc="outside lower left", frameon=False)
            figure.savefig(stream, format="png", metadata={"Software": None})
        return stream.getvalue()


def _draw(axes: Axes, curves: Sequence[Curve], title: str) -> None:
    span = common_span(curves)
    for drawn in curves:
        _draw_curve(axes, drawn, span)
    points = [point for drawn in curves for point in (*drawn.forward, *drawn.backward)]
    top = 1.12 * max(point.high_bytes for point in points)
    ticks = byte_ticks(top)
    axes.set_ylim(0, top)
    axes.set_yticks(ticks, [size_label(tick) for tick in ticks])
    axes.set_xlim(0, max(1, span.ops))
    axes.axvline(span.forward, color="0.5", linestyle=":", linewidth=1)
    axes.set_xlabel(f"ops in order: forward ({span.forward}), then backward")
    axes.set_ylabel("live bytes, without workspace")
    axes.set_title(literal(title), fontsize="medium", loc="left")
    axes.grid(axis="y", alpha=0.3)


def _draw_curve(axes: Axes, drawn: Curve, span: Span) -> None:
    columns = resample(drawn, MOST_COLUMNS, span)
    heights = [math.nan if point is None else point.high_bytes for point in columns.points]
    edges = [float(column.first) for column in columns.forward]
    edges += [float(span.forward + column.first) for column in columns.backward]
    color = series_color(drawn.series)
    highest = columns.highest or 0
    edges.append(float(span.ops))
    axes.stairs(
        heights,
        edges,
        baseline=None,
        color=color,
        linewidth=1.6,
        linestyle=dashes(drawn.series),
        label=literal(highest_text(drawn.name, columns.points[highest])),
    )
    axes.plot(
        (edges[highest] + edges[highest + 1]) / 2, heights[highest], "o", color=color, markersize=5
    )


def dashes(index: int) -> str | tuple[int, tuple[float, ...]]:
    """The dashes of the SVG; matplotlib counts them in widths of the line."""
    known = series_dash(index)
    return "solid" if known is None else (0, tuple(float(d) / 2 for d in known.split()))


def literal(text: str) -> str:
    """`text` as matplotlib shows it as it is: no formulas, no hidden labels."""
    plain = visible(" ".join(text.split(" "))).replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain
