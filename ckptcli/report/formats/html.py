"""One self-contained page: the whole record for the eye, light and dark, without a network.

Invariants: nothing is loaded from anywhere, which the page's own policy makes sure of; there is no
script; all that comes from the record is escaped (`ckptcli.report.drawing.markup`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ckptcli.measure.record import SCHEMA, RunRecord
from ckptcli.report import comparison, surroundings
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.scatter import scatter_svg
from ckptcli.report.drawing.strip import fate_legend, peak_bars, strips
from ckptcli.report.drawing.style import page_style
from ckptcli.report.drawing.tables import bullets, cards, comparison_table, facts, log_details
from ckptcli.report.drawing.timeline import timeline_svg
from ckptcli.report.formats.base import register

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@register
class HtmlExporter:
    """Verdicts, table, timeline, time against peak, graph, log, machine."""

    name: ClassVar[str] = "html"
    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm")
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        page = element("html", _head(record), element("body", *_body(record)), lang="en")
        return f"<!DOCTYPE html>\n{page}\n"


def _head(record: RunRecord) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name_="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", f"ckpt: {record.title}"),
        element("style", Markup(page_style())),
    )


def _body(record: RunRecord) -> Iterator[Markup]:
    yield _header(record)
    yield _section(
        "Comparison",
        comparison_table(record),
        element("p", comparison.EXPLANATION, class_="quiet small"),
    )
    if record.warnings:
        yield _section("Warnings", bullets(record.warnings))
    yield from _pictures(record)
    yield _section(
        "Graph",
        element("p", "A cell is a node; point at it for op, shape, bytes and uses."),
        fate_legend(),
        strips(record),
    )
    yield _section("Log of the backward pass", log_details(record))
    yield _section(
        "Machine", facts([*surroundings.machine_facts(record), *surroundings.origin_facts(record)])
    )
    yield from _reproduction(record)
    yield element("footer", f"ckpt {record.version}; schema {SCHEMA}")


def _header(record: RunRecord) -> Markup:
    name = str(record.workload.get("name", "workload"))
    return element(
        "header",
        element("p", "Gradient checkpointing, compared", class_="kind"),
        element("h1", f"{name}: {record.title}"),
        element("p", surroundings.summary_line(record), class_="quiet"),
        cards(record),
    )


def _pictures(record: RunRecord) -> Iterator[Markup]:
    timeline = timeline_svg(record, alone=False)
    if timeline is not None:
        caption = (
            "The exact account of the storages that are live, without what kernels use inside "
            "themselves. Point at a column for node, op, shape and bytes."
        )
        yield _figure("Memory over the pass", "timeline", timeline, caption)
    scatter = scatter_svg(record)
    if scatter is not None:
        caption = (
            "Down is less memory, left is less time. Bars: 95 % intervals of the medians; "
            "dashed lines: the reference."
        )
        yield _figure("Time against peak", "scatter", scatter, caption)
    else:
        yield _section("Time against peak", element("p", "Nothing was timed.", class_="quiet"))
    yield _section("Live at the peak of backward", peak_bars(record))


def _figure(title: str, kind: str, picture: Markup, caption: str) -> Markup:
    shown = element("div", picture, class_="wide")
    return _section(title, element("figure", shown, element("figcaption", caption), class_=kind))


def _reproduction(record: RunRecord) -> Iterator[Markup]:
    command = comparison.command_line(record)
    settings = {**record.workload, **record.config}
    yield _section(
        "Reproduce",
        *([element("pre", command, class_="wrap")] if command else []),
        element(
            "details",
            element("summary", "settings of this run"),
            facts((name, _value(value)) for name, value in settings.items()),
        ),
    )


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _section(title: str, *parts: str) -> Markup:
    return element("section", element("h2", title), *parts)
