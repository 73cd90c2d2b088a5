"""The parts of the page that are words and figures: verdicts, comparison, log, machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptcli.events import Event, Level, Retrieved, Visited
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.measure.trace import Trace
from ckptcli.report import readings, run_table
from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.drawing.markup import Markup, below, element, joined
from ckptcli.report.drawing.style import series_class
from ckptcli.report.log import burn_line
from ckptcli.report.looks import WORDS
from ckptcli.units import count


def word(text: str) -> Markup:
    """A verdict in its colour."""
    tone = WORDS.get(text)
    return element("span", text, class_="word" if tone is None else f"word {tone.name}")


def swatch(index: int) -> Markup:
    """The colour of a row of the record."""
    return element("span", class_=f"swatch {series_class(index)}")


def cards(record: RunRecord) -> Markup:
    """What each strategy did, in a few sentences."""
    drawn = (_card(record.beside(row).index(row), row, record) for row in record.rows)
    return element("div", *drawn, class_="cards")


def _card(index: int, row: Row, record: RunRecord) -> Markup:
    name = run_table.verdict(row, record)
    sentences = [readings.figures(row, record), readings.why(row)]
    return element(
        "div",
        element("h3", swatch(index), element("span", record.label(row)), word(name)),
        *(element("p", sentence) for sentence in sentences if sentence),
        *(element("p", sentence, class_="quiet") for sentence in readings.readings(row, record)),
        element("p", element("code", readings.device(row)), class_="quiet"),
        class_="card",
    )


def table(drawn: Table) -> Markup:
    """Any table of cells, small print below its figure."""
    head = [
        element("th", column.name, scope="col", class_=_kind(column)) for column in drawn.columns
    ]
    body = [
        element("tr", *(_cell(column, cell) for column, cell in drawn.cells_of(row)))
        for row in drawn.rows
    ]
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="wide")


def _cell(column: Column, cell: Cell) -> Markup:
    figure = word(cell.text) if column.kind == "word" else cell.text
    detail = element("span", cell.detail, class_="low") if cell.detail else ""
    return element("td", figure, detail, class_=_kind(column))


def _kind(column: Column) -> str | None:
    return None if column.kind == "figure" else "text"


def log_details(record: RunRecord) -> Markup:
    """The log of each pass, folded."""
    return joined(
        element(
            "details",
            element(
                "summary", f"{record.label(row)}: {count(len(trace.retrievals), 'value')} retrieved"
            ),
            element("pre", below(log_lines(trace)) or "nothing to retrieve"),
        )
        for row, trace in record.rows_with_trace
        if trace.nodes
    )


def log_lines(trace: Trace) -> Iterator[str]:
    """The lines that Burn logs at level full."""
    for retrieval in trace.retrievals:
        events: list[Event] = [
            Retrieved(retrieval.node, len(retrieval.visited), retrieval.needed_by),
            *(Visited(node) for node in retrieval.visited),
        ]
        yield from (line for event in events if (line := burn_line(event, Level.FULL)))


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Names and values."""
    return element(
        "dl",
        *(part for name, value in pairs for part in (element("dt", name), element("dd", value))),
    )


def bullets(lines: Iterable[str]) -> Markup:
    """A list of sentences."""
    return element("ul", *(element("li", line) for line in lines), class_="warnings")
