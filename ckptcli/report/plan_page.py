"""A program's plan as one page: its sentences, predicted time against peak, the table, the reasons.

Invariant: nothing is loaded from anywhere, and all text of the program is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.planning.plan import SCHEMA
from ckptcli.planning.tape.choice import Choice
from ckptcli.planning.tape.frontier import Point
from ckptcli.planning.tape.measured import Measured
from ckptcli.report.drawing.frontier import frontier_svg
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.tables import bullets, table
from ckptcli.report.formats.html import head
from ckptcli.report.program_plan import points_of, points_table, sentences
from ckptcli.version import VERSION

CAPTION = (
    "Down is less memory, left is less time. The line: plans. Points with names: strategies, "
    "hollow where a plan needs no more of either."
)


def plan_page(choice: Choice, measured: Measured | None, points: Sequence[Point] | None) -> str:
    """The page, ready to write; `points` are of the frontier, where it was asked for."""
    title = f"plan of {choice.problem.graph.title}"
    body = element("body", *_body(choice, measured, points))
    return f"<!DOCTYPE html>\n{element('html', head(title), body, lang='en')}\n"


def _body(
    choice: Choice, measured: Measured | None, points: Sequence[Point] | None
) -> Iterator[Markup]:
    yield element(
        "header",
        element("p", "A plan under a memory budget", class_="kind"),
        element("h1", choice.problem.graph.title),
        *(element("p", sentence) for sentence in sentences(choice, measured)),
    )
    picture = frontier_svg(points_of(choice, points))
    if picture is not None:
        shown = element("div", picture, class_="wide")
        figure = element("figure", shown, element("figcaption", CAPTION), class_="scatter")
        yield element("section", element("h2", "Time against peak"), figure)
    yield element(
        "section", element("h2", "Plans and strategies"), table(points_table(choice, points))
    )
    if reasons := choice.reasons():
        yield element("section", element("h2", "What is held, and why"), bullets(reasons))
    yield element("footer", f"ckpt {VERSION}; schema {SCHEMA}")
