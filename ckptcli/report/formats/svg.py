"""The memory timeline as an SVG file, for papers."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.measure.record import RunRecord
from ckptcli.report.drawing.markup import Markup, element
from ckptcli.report.drawing.style import INK
from ckptcli.report.drawing.timeline import timeline_svg
from ckptcli.report.formats.base import register


@register
class SvgExporter:
    """Live bytes over the ops of the pass, a line a strategy."""

    name: ClassVar[str] = "svg"
    suffixes: ClassVar[tuple[str, ...]] = (".svg",)
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        return (timeline_svg(record, alone=True) or _empty()) + "\n"


def _empty() -> Markup:
    return element(
        "svg",
        element("text", "no op was run", x=8, y=20, fill=INK),
        xmlns="http://www.w3.org/2000/svg",
        width=200,
        height=30,
    )
