"""The parts of the page that are words and figures: verdicts, comparison, log, machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptcli import units
from ckptcli.events import Event, Level, Retrieved, Visited
from ckptcli.measure.memory import LiveTensor
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.measure.trace import Trace
from ckptcli.report import comparison, readings
from ckptcli.report.drawing.markup import Markup, element, joined
from ckptcli.report.drawing.style import series_class
from ckptcli.report.log import burn_line

_TONES = {
    "agrees": "good",
    "differs": "bad",
    "effective": "good",
    "held only": "warn",
    "no effect": "warn",
    "worse": "bad",
    "wrong": "bad",
    "faster": "good",
    "slower": "warn",
    "reference": "quiet",
}


def word(text: str) -> Markup:
    """A verdict in its colour."""
    return element("span", text, class_=f"word {_TONES.get(text, '')}".rstrip())


def swatch(index: int) -> Markup:
    """The colour of a strategy."""
    return element("span", class_=f"swatch {series_class(index)}")


def cards(record: RunRecord) -> Markup:
    """What each strategy did, in a few sentences."""
    return element(
        "div", *(_card(i, row, record) for i, row in enumerate(record.rows)), class_="cards"
    )


def _card(index: int, row: Row, record: RunRecord) -> Markup:
    name = comparison.verdict(row, record)
    return element(
        "div",
        element("h3", swatch(index), element("span", readings.title(row, record)), word(name)),
        element("p", readings.reason(row, record)),
        *(element("p", sentence) for sentence in readings.readings(row, record)),
        element("p", element("code", row.device), class_="quiet"),
        class_="card",
    )


_TEXT_COLUMNS = frozenset({"strategy", "time", "verdict"})


def comparison_table(record: RunRecord) -> Markup:
    """The comparison: a strategy a row."""
    head = [
        element("th", name, scope="col", class_="text" if name in _TEXT_COLUMNS else None)
        for name in comparison.HEADER
    ]
    body = [_comparison_row(row) for row in comparison.rows(record)]
    return _table(head, body)


def _comparison_row(cells: Iterable[comparison.Cell]) -> Markup:
    drawn = []
    for name, cell in zip(comparison.HEADER, cells):
        figure = word(cell.text) if name in ("time", "verdict") else cell.text
        detail = element("span", cell.detail, class_="low") if cell.detail else ""
        kind = "text" if name in _TEXT_COLUMNS else None
        drawn.append(element("td", figure, detail, class_=kind))
    return element("tr", *drawn)


def _table(head: Iterable[str], body: Iterable[str]) -> Markup:
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="wide")


def live_table(tensors: Iterable[LiveTensor]) -> Markup:
    """What was live at the peak, the largest first."""
    head = [element("th", name, scope="col") for name in ("why", "node", "op", "shape", "size")]
    body = [
        element(
            "tr",
            element("td", tensor.why),
            element("td", "" if tensor.node is None else str(tensor.node)),
            element("td", tensor.op or ""),
            element("td", str(list(tensor.shape))),
            element("td", units.size(tensor.bytes)),
        )
        for tensor in tensors
    ]
    return _table(head, body)


def log_details(record: RunRecord) -> Markup:
    """The log of each pass, folded."""
    return joined(
        element(
            "details",
            element("summary", f"{row.strategy}: {len(trace.retrievals)} values retrieved"),
            element("pre", "\n".join(log_lines(trace)) or "nothing to retrieve"),
        )
        for row, trace in record.rows_with_trace
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
