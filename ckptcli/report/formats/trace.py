"""The memory pass as trace events, for Perfetto or chrome://tracing.

One process a strategy. Its threads: forward, recompute and backward with an event for each op, then
as many rows as it takes to show the lives of tensors without two on top of each other. A counter
has the live bytes: at the start of each op the most that is live during it, at the end what stays.

Invariants: events of one thread never overlap; times are whole nanoseconds.

Source: "Trace Event Format" (the document of the catapult project), object form.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ckptcli.measure.record import RunRecord
from ckptcli.measure.trace import Life, TimelinePoint, Trace
from ckptcli.report.formats.base import no_pass, register

PHASES = ("forward", "recompute", "backward")
COUNTER = "live bytes"
FIRST_LIFE_THREAD = 10

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Stay:
    """A life and the first and last point of the timeline that it touches."""

    life: Life
    first: int
    last: int


@register
class TraceExporter:
    """The passes of all strategies side by side."""

    name: ClassVar[str] = "trace"
    suffixes: ClassVar[tuple[str, ...]] = (".trace.json",)
    binary: ClassVar[bool] = False
    draws_pass: ClassVar[bool] = True

    def render(self, record: RunRecord) -> str:
        if not any(trace.timeline for _, trace in record.rows_with_trace):
            raise no_pass(".trace.json")
        events = [
            event
            for process, (row, trace) in enumerate(record.rows_with_trace, start=1)
            for event in _row_events(process, record.label(row), row.device, trace)
        ]
        whole = {
            "traceEvents": events,
            "displayTimeUnit": "ns",
            "otherData": {
                "title": record.title,
                "device": record.device,
                "version": f"ckpt {record.version}",
            },
        }
        return json.dumps(whole, allow_nan=False) + "\n"


def _row_events(process: int, name: str, device: str, trace: Trace) -> Iterator[Event]:
    yield _metadata("process_name", process, 0, name=name)
    yield _metadata("process_labels", process, 0, labels=device)
    yield _metadata("process_sort_index", process, 0, sort_index=process)
    rows = _rows(trace.lives, len(trace.timeline))
    threads = dict(enumerate(PHASES, start=1))
    threads |= {FIRST_LIFE_THREAD + i: f"tensors {i + 1}" for i in range(len(rows))}
    for thread, name in threads.items():
        yield _metadata("thread_name", process, thread, name=name)
        yield _metadata("thread_sort_index", process, thread, sort_index=thread)
    shapes = {node.node: node.shape for node in trace.nodes}
    for point in trace.timeline:
        yield _op_event(process, point, shapes)
    yield from _counter_events(process, trace.timeline)
    for thread, stays in enumerate(rows, start=FIRST_LIFE_THREAD):
        for stay in stays:
            yield _life_event(process, thread, stay, trace.timeline)


def _op_event(process: int, point: TimelinePoint, shapes: dict[int, Sequence[int]]) -> Event:
    arguments = {
        "node": point.node,
        "op": point.op,
        "shape": list(shapes.get(-1 if point.node is None else point.node, ())),
        "high_bytes": point.high_bytes,
        "end_bytes": point.end_bytes,
    }
    thread = PHASES.index(point.phase) + 1 if point.phase in PHASES else len(PHASES)
    name = f"{point.op or point.phase} {'' if point.node is None else point.node}".rstrip()
    return _complete(name, point.phase, process, thread, point.start_s, point.end_s, arguments)


def _counter_events(process: int, timeline: Sequence[TimelinePoint]) -> Iterator[Event]:
    for point in timeline:
        yield _counter(process, point.start_s, point.high_bytes)
    if timeline:
        yield _counter(process, timeline[-1].end_s, timeline[-1].end_bytes)


def _counter(process: int, time_s: float, live_bytes: int) -> Event:
    ts = _nanoseconds(time_s) / 1000
    return {
        "ph": "C",
        "name": COUNTER,
        "pid": process,
        "tid": 0,
        "ts": ts,
        "args": {"bytes": live_bytes},
    }


def _rows(lives: Sequence[Life], points: int) -> list[list[_Stay]]:
    """The lives in as few rows as keep those of one row apart; nothing without a timeline."""
    if points == 0:
        return []
    rows: list[list[_Stay]] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    stays = [_stay(life, points - 1) for life in lives]
    for stay in sorted(stays, key=lambda stay: stay.first):
        while busy and busy[0][0] < stay.first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(rows)
        if row == len(rows):
            rows.append([])
        rows[row].append(stay)
        heapq.heappush(busy, (stay.last, row))
    return rows


def _stay(life: Life, last: int) -> _Stay:
    return _Stay(life, min(life.born, last), last if life.died is None else min(life.died, last))


def _life_event(process: int, thread: int, stay: _Stay, timeline: Sequence[TimelinePoint]) -> Event:
    life = stay.life
    start_s, end_s = timeline[stay.first].start_s, timeline[stay.last].end_s
    arguments = {
        "node": life.node,
        "op": life.op,
        "why": life.why,
        "shape": list(life.shape),
        "bytes": life.bytes,
        "freed": life.died is not None,
    }
    owner = "" if life.node is None else f" of {life.op or 'leaf'} {life.node}"
    return _complete(f"{life.why}{owner}", "tensor", process, thread, start_s, end_s, arguments)


def _complete(
    name: str,
    category: str,
    process: int,
    thread: int,
    start_s: float,
    end_s: float,
    arguments: dict[str, Any],
) -> Event:
    start, end = _nanoseconds(start_s), _nanoseconds(end_s)
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": thread,
        "ts": start / 1000,
        "dur": max(0, end - start) / 1000,
        "args": arguments,
    }


def _metadata(kind: str, process: int, thread: int, **arguments: object) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": arguments}


def _nanoseconds(time_s: float) -> int:
    return round(time_s * 1e9)
