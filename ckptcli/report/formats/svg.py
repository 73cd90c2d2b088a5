"""The memory timeline as an SVG file, for papers."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.measure.record import RunRecord
from ckptcli.report.drawing.timeline import timelines_svg
from ckptcli.report.formats.base import no_pass, register


@register
class SvgExporter:
    """Live bytes over the ops of the pass, a line a strategy, a picture a program."""

    name: ClassVar[str] = "svg"
    suffixes: ClassVar[tuple[str, ...]] = (".svg",)
    binary: ClassVar[bool] = False
    draws_pass: ClassVar[bool] = True

    def render(self, record: RunRecord) -> str:
        picture = timelines_svg(record)
        if picture is None:
            raise no_pass(".svg")
        return picture + "\n"
