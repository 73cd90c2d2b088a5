"""The graph as a strip of cells, one a node, and what is live at the highest point as bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ckptcli import units
from ckptcli.measure.memory import PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.measure.trace import NodeFate, Trace
from ckptcli.report.charts import live_when_highest
from ckptcli.report.drawing.markup import Markup, element, joined
from ckptcli.report.drawing.style import why_class
from ckptcli.report.drawing.tables import swatch, table
from ckptcli.report.live_table import live_table
from ckptcli.report.looks import FATES, bytes_by_look, fate_look, legend_of

DENSE_ABOVE = 300
"""More nodes than this are drawn small, without their numbers."""


def fate_legend() -> Markup:
    """What the cells mean."""
    return element(
        "ul",
        *(element("li", _cell(fate, None), fate) for fate in FATES),
        class_="legend",
    )


def strips(record: RunRecord) -> Markup:
    """A strip a strategy, nodes in the order of their ids."""
    return joined(
        _strip(i, record.label(row), row.trace)
        for i, row in enumerate(record.rows)
        if row.trace is not None and row.trace.nodes
    )


def _strip(index: int, name: str, trace: Trace) -> Markup:
    nodes = trace.nodes
    dense = len(nodes) > DENSE_ABOVE
    counts = Counter(node.fate for node in nodes)
    ordered = [fate for fate in dict.fromkeys([*FATES, *counts]) if counts[fate]]
    text = ", ".join(_counted(counts[fate], fate) for fate in ordered)
    cut = "" if counts["output"] else f"; the first {units.count(len(nodes), 'node')}"
    return joined(
        [
            element(
                "h3",
                swatch(index),
                f" {name} ",
                element("span", text + cut, class_="quiet small"),
            ),
            element(
                "ul",
                *(_node(node, dense) for node in nodes),
                class_="strip dense" if dense else "strip",
            ),
        ]
    )


def _counted(count: int, fate: str) -> str:
    several = count > 1 and fate in ("parameter", "input", "output")
    return f"{count} {fate}{'s' * several}"


def _node(node: NodeFate, dense: bool) -> Markup:
    return element("li", _cell(node.fate, None if dense else node.node, node_text(node)))


def _cell(fate: str, node: int | None, title: str | None = None) -> Markup:
    letter = fate_look(fate).letter
    kind = f"node fate-{fate}" if fate in FATES else "node"
    below = "" if node is None else element("small", str(node))
    return element("span", letter, below, class_=kind, title=title)


def node_text(node: NodeFate) -> str:
    """`node 5, matmul of 4, 0, [64, 64] 16.0 KiB: saved, used 4 times in backward`."""
    parents = ", ".join(map(str, node.parents))
    op = "leaf" if node.op is None else f"{node.op} of {parents or 'nothing'}"
    text = f"node {node.node}, {op}, {list(node.shape)} {units.size(node.bytes)}: {node.fate}"
    if node.uses:
        text += f", used {node.uses} time{'s' * (node.uses != 1)} in backward"
    if node.held_for_constants:
        constants = ", ".join(map(str, node.held_for_constants))
        text += f"; held, since parent {constants} is a constant"
    if node.source:
        text += f"; made at {node.source}"
    return text


def live_bars(record: RunRecord) -> Markup:
    """What is live at the highest point, a bar a row, on one scale."""
    known = live_when_highest(record)
    most = max((live.total_bytes for _, _, live in known), default=0)
    whys = legend_of(why for _, _, live in known for why in live.bytes_by_why)
    return joined(
        [
            element(
                "ul",
                *(
                    element("li", element("span", class_=f"why {why_class(why)}"), why)
                    for why in whys
                ),
                class_="legend",
            ),
            *(_bar(i, name, live, max(1, most)) for i, name, live in known),
        ]
    )


def _bar(index: int, name: str, live: PeakLive, most: int) -> Markup:
    count = f"{units.size(live.total_bytes)} in {units.count(live.total_tensors, 'storage')}"
    shown = f"the {len(live.largest)} largest" if len(live.largest) < live.total_tensors else "all"
    return joined(
        [
            element(
                "h3",
                swatch(index),
                f" {name} ",
                element("span", count, class_="quiet small"),
            ),
            element(
                "div",
                *_segments(live.bytes_by_why, most),
                class_="peak",
            ),
            element(
                "details",
                element("summary", f"{shown} of them", class_="small"),
                table(live_table(live.largest)),
            ),
        ]
    )


def _segments(by_why: Mapping[str, int], most: int) -> Iterator[Markup]:
    for why, size_bytes in bytes_by_look(by_why).items():
        share = size_bytes / most * 100
        text = units.size(size_bytes)
        yield element(
            "span",
            text if share >= 9 else "",
            class_=f"{why_class(why)}{'' if share >= 9 else ' thin'}",
            style=f"width:{share:.2f}%",
            title=f"{why}: {text}",
        )
