"""One self-contained page: the whole record for the eye, light and dark, without a network.

Invariants: nothing is loaded from anywhere, which the page's own policy makes sure of; there is no
script; all that comes from the record is escaped (`ckptcli.report.drawing.markup`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ckptcli.measure.record import SCHEMA, RunRecord
from ckptcli.report import run_table, surroundings
from ckptcli.report.charts import live_title, live_when_highest
from ckptcli.report.compiled_table import EXPLANATION as COMPILED_EXPLANATION, compiled_table
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.samples import samples_svg
from ckptcli.report.drawing.scatter import scatter_svg
from ckptcli.report.drawing.strip import fate_legend, live_bars, strips
from ckptcli.report.drawing.style import page_style
from ckptcli.report.drawing.tables import bullets, cards, facts, log_details, table
from ckptcli.report.drawing.timeline import timeline_svg
from ckptcli.report.formats.base import register
from ckptcli.report.gradient_table import EXPLANATION, gradient_lines, gradient_table
from ckptcli.report.phase_table import phase_table

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@register
class HtmlExporter:
    """Verdicts, tables, time against peak, samples, timeline, graph, log, machine."""

    name: ClassVar[str] = "html"
    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm")
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        page = element(
            "html", head(surroundings.heading(record)), element("body", *_body(record)), lang="en"
        )
        return f"<!DOCTYPE html>\n{page}\n"


def head(title: str) -> Markup:
    """The head of a page that loads nothing."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name_="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{title} - ckpt"),
        element("style", Markup(page_style())),
    )


def _body(record: RunRecord) -> Iterator[Markup]:
    yield _header(record)
    yield _section(
        "Comparison",
        table(run_table.table(record)),
        element("p", run_table.explanation(record), class_="quiet small"),
    )
    yield from _gradients(record)
    yield from _compiled(record)
    yield from _phases(record)
    if record.warnings:
        yield _section("Warnings", bullets(record.warnings))
    yield from _pictures(record)
    if any(trace.nodes for _, trace in record.rows_with_trace):
        yield from _pass_sections(record)
    yield _section("Machine", facts(surroundings.machine_facts(record)))
    yield from _reproduction(record)
    yield element("footer", f"ckpt {record.version}; schema {SCHEMA}")


def _header(record: RunRecord) -> Markup:
    origin = surroundings.origin_line(record)
    return element(
        "header",
        element("p", "Gradient checkpointing, compared", class_="kind"),
        element("h1", surroundings.heading(record)),
        *([element("p", origin, class_="quiet")] if origin else []),
        element("p", surroundings.rounds_line(record), class_="quiet"),
        cards(record),
    )


def _gradients(record: RunRecord) -> Iterator[Markup]:
    """What a program with one number to differentiate by is held against."""
    gradients = gradient_table(record)
    if gradients is not None:
        yield _section(
            "Gradient",
            *(element("p", line) for line in gradient_lines(record)),
            table(gradients),
            element("p", EXPLANATION, class_="quiet small"),
        )


def _compiled(record: RunRecord) -> Iterator[Markup]:
    """What compiled programs take."""
    compiled = compiled_table(record)
    if compiled is not None:
        said = element("p", COMPILED_EXPLANATION, class_="quiet small")
        yield _section("What the compiled program takes", table(compiled), said)


def _phases(record: RunRecord) -> Iterator[Markup]:
    """What is live before and after each phase of a step of training."""
    phases = phase_table(record)
    if phases is not None:
        yield _section("The phases of a step", table(phases))


def _bars(record: RunRecord) -> str:
    return "Bars: 95 % intervals of the medians. " if run_table.has_intervals(record) else ""


def _pictures(record: RunRecord) -> Iterator[Markup]:
    """The pictures of each program: curves of several would hide each other."""
    for part in record.parts:
        yield from _pictures_of(part, f": {part.title}" if record.programs else "")


def _pictures_of(record: RunRecord, which: str) -> Iterator[Markup]:
    """`which` stands behind each title."""
    scatter = scatter_svg(record)
    if scatter is not None:
        caption = (
            f"Down is less memory, left is less time. {_bars(record)}"
            "Dashed lines: the reference. Below the axes: rows whose peak is not known."
        )
        yield _figure(f"Time against peak{which}", "scatter", scatter, caption)
    else:
        yield _section(
            f"Time against peak{which}", element("p", "Nothing was timed.", class_="quiet")
        )
    samples = samples_svg(record)
    if samples is not None:
        band = "; band: its 95 % interval" if run_table.has_intervals(record) else ""
        caption = (
            f"A dot a round, the first at the top of its lane. Line: the median{band}. "
            "The axis begins where the fastest round is."
        )
        yield _figure(f"Samples{which}", "samples", samples, caption)
    timeline = timeline_svg(record, alone=False)
    if timeline is not None:
        caption = (
            "The exact account of the storages that are live, without the workspace of kernels, "
            "which the peak has on top. Point at a column for node, op, shape and bytes."
        )
        yield _figure(f"Live bytes over the pass{which}", "timeline", timeline, caption)
    known = [live for _, _, live in live_when_highest(record)]
    if known:
        yield _section(f"{live_title(known).capitalize()}{which}", live_bars(record))


def _pass_sections(record: RunRecord) -> Iterator[Markup]:
    """The graph and the log, of rows whose pass is known op by op."""
    yield _section(
        "Graph",
        element("p", "A cell is a node; point at it for op, shape, bytes, uses and line."),
        fate_legend(),
        *(part for program in record.parts for part in _strips(program, record)),
    )
    yield _section("Log of the backward pass", log_details(record))


def _strips(program: RunRecord, record: RunRecord) -> Iterator[Markup]:
    """The strips of a program, under its title where there are several."""
    if record.programs:
        yield element("h3", program.title)
    yield strips(program)


def _figure(title: str, kind: str, picture: Markup, caption: str) -> Markup:
    shown = element("div", picture, class_="wide")
    return _section(title, element("figure", shown, element("figcaption", caption), class_=kind))


def _reproduction(record: RunRecord) -> Iterator[Markup]:
    command = run_table.command_line(record)
    settings = {**record.workload, **record.config}
    yield _section(
        "Reproduce",
        *([element("pre", command, class_="wrap")] if command else []),
        facts(surroundings.origin_facts(record)),
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
