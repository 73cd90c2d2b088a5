"""Sweeps as a page, SVG and PNG: lines a strategy on logarithmic axes."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from ckptcli.errors import UsageError
from ckptcli.report.drawing.lines import panel_svg, panels_svg
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import series_color
from ckptcli.report.drawing.tables import bullets, table
from ckptcli.report.formats.html import head
from ckptcli.report.formats.png import dashes, literal
from ckptcli.report.law_lines import law_lines
from ckptcli.report.sweep_chart import Panel, panels, size_text
from ckptcli.report.sweep_table import heading, sentences, tables
from ckptcli.report.swept import Swept
from ckptcli.sweep.sweep_json import SCHEMA
from ckptcli.version import VERSION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_INCHES, WIDTH_INCHES, DOTS_PER_INCH = 3.4, 8.0, 150


class HtmlSweep:
    """A page: lines, tables, laws, and what failed."""

    name: ClassVar[str] = "html"
    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm")
    binary: ClassVar[bool] = False

    def render(self, swept: Swept, /) -> str:
        parts = (head(heading(swept.sweep)), element("body", *_body(swept)))
        return f"<!DOCTYPE html>\n{element('html', *parts, lang='en')}\n"


class SvgSweep:
    """The lines alone, panels below each other."""

    name: ClassVar[str] = "svg"
    suffixes: ClassVar[tuple[str, ...]] = (".svg",)
    binary: ClassVar[bool] = False

    def render(self, swept: Swept, /) -> str:
        return panels_svg(_drawn(swept, ".svg")) + "\n"


class PngSweep:
    """The same, drawn by matplotlib (extra `plot`)."""

    name: ClassVar[str] = "png"
    suffixes: ClassVar[tuple[str, ...]] = (".png",)
    binary: ClassVar[bool] = True

    def __init__(self) -> None:
        if importlib.util.find_spec("matplotlib") is None:
            raise UsageError("PNG needs matplotlib", "pip install 'ckptcli[plot]'")

    def render(self, swept: Swept, /) -> bytes:
        drawn = _drawn(swept, ".png")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        size = (WIDTH_INCHES, PANEL_INCHES * len(drawn))
        figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(drawn), squeeze=False)
        for (place,), panel in zip(axes, drawn):
            _draw(place, panel)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
        return stream.getvalue()


def _drawn(swept: Swept, suffix: str) -> list[Panel]:
    """The panels.

    Raises:
        UsageError: there is nothing to draw a line through.
    """
    found = panels(swept.sweep)
    if not found:
        raise UsageError(
            f"{suffix} shows lines over a size, and no two points differ in one",
            "sweep over a number, or export .md, .csv or .json",
        )
    return found


def _body(swept: Swept) -> Iterator[Markup]:
    sweep = swept.sweep
    yield element(
        "header",
        element("p", "Gradient checkpointing over many points", class_="kind"),
        element("h1", heading(sweep)),
    )
    for panel in panels(sweep):
        shown = element("div", panel_svg(panel), class_="wide")
        yield _section(panel.title, element("figure", shown, class_="scatter"))
    laws, said = list(law_lines(swept.laws)), list(sentences(sweep))
    if laws:
        yield _section("Laws", bullets(laws))
    if said:
        yield _section("What the tables do not have", bullets(said))
    for drawn in tables(sweep):
        yield _section(drawn.title, table(drawn))
    yield element("footer", f"ckpt {VERSION}; schema {SCHEMA}")


def _section(title: str, *parts: str) -> Markup:
    return element("section", element("h2", title[:1].upper() + title[1:]), *parts)


def _draw(axes: Axes, panel: Panel) -> None:
    for line in panel.lines:
        xs, ys = zip(*line.points)
        color, style = series_color(line.series), dashes(line.series)
        axes.loglog(xs, ys, "o", color=color, linestyle=style, label=literal(line.name))
    axes.set_xticks(panel.sizes, list(map(size_text, panel.sizes)))
    axes.set_yticks(panel.figures, _texts(panel))
    axes.minorticks_off()
    axes.set_xlabel(panel.across)
    axes.set_title(literal(panel.title), fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False)


def _texts(panel: Panel) -> Sequence[str]:
    return [panel.text(figure * (1 + 1e-12)) for figure in panel.figures]
