"""The record itself as JSON, schema `ckpt.run/1`; `ckptcli.measure.record_json` reads it back."""

from __future__ import annotations

from typing import ClassVar

from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_json
from ckptcli.report.formats.base import register


@register
class JsonExporter:
    """Everything that is known of a run."""

    name: ClassVar[str] = "json"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        return record_json(record)
