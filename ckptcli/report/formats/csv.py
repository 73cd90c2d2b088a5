"""The samples as CSV, one row each, times in seconds.

Another engine's rows bear its name, `torch none`; a phase that is not timed apart is empty.
A row that is compiled whole has on each of its samples what it takes, and how long it was in the
making. `round` counts within a process, warm-up included, as the `rep` lines on the screen do.
Dialect: RFC 4180, but with line feeds alone. A row is one line.
Of several programs the options that vary are columns behind the others.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from ckptcli.measure.point import shown_name
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report.formats.base import register
from ckptcli.visible import visible

_FORMULA = ("=", "+", "-", "@")

HEADER = (
    "strategy",
    "phase",
    "process",
    "round",
    "forward_s",
    "backward_s",
    "total_s",
    "repeats",
    "compiled_peak_bytes",
    "fresh_process_bytes",
    "lower_s",
    "build_s",
    "first_call_s",
    "step_s",
)


@register
class CsvExporter:
    """A header and a row for each sample of each strategy; `phase` is warmup or counted."""

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    binary: ClassVar[bool] = False

    def render(self, record: RunRecord) -> str:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*HEADER, *(as_text(shown_name(name)) for name in record.varying)])
        for row in record.rows:
            point = [row.point.get(name) for name in record.varying]
            writer.writerows([*cells, *point] for cells in _rows(record.name_of(row), row))
        return stream.getvalue()


def as_text(name: str) -> str:
    """A spreadsheet takes a cell that begins so for a formula; an apostrophe says it is text."""
    shown = visible(name)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _compiled(row: Row) -> tuple[object, ...]:
    """What a program that is compiled whole takes, and how long it was in the making."""
    known = row.compiled
    if known is None:
        return ("",) * 5
    return (
        known.peak_bytes,
        known.fresh_process_bytes,
        known.lower_s,
        known.build_s,
        known.first_call_s,
    )


def _rows(name: str, row: Row) -> Iterator[tuple[object, ...]]:
    shown = as_text(name)
    rounds: Counter[int] = Counter()
    for phase, samples in (("warmup", row.passes.warmup), ("counted", row.samples)):
        for sample in samples:
            yield (
                shown,
                phase,
                sample.process,
                rounds[sample.process],
                sample.forward_s,
                sample.backward_s,
                sample.total_s,
                sample.repeats,
                *_compiled(row),
                sample.step_s,
            )
            rounds[sample.process] += 1
