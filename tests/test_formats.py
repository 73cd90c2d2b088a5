"""Exports: every format takes every record, loses nothing, escapes everything."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import struct
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser
from unittest import mock
from xml.etree import ElementTree

import pytest

from ckptcli import units
from ckptcli.errors import UsageError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.record import RunRecord, StrategyRecord, Trace
from ckptcli.measure.record_json import read_record
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.report.charts import common_span, curve
from ckptcli.report.comparison import HEADER, command_line, rows
from ckptcli.report.drawing.markup import Markup, element, escaped
from ckptcli.report.formats import exporter_for, registry
from ckptcli.report.formats.csv import HEADER as CSV_HEADER
from ckptcli.workloads.silu import SiluWorkload

NASTY = "</script><b>|\"quoted\", 'it' & `code` [a](b) *x* $y$\r\n\x00\udc80"
UNICODE = "größe 検査 µ 🙂"
SVG_SPACE = "{http://www.w3.org/2000/svg}"
PLOT = importlib.util.find_spec("matplotlib") is not None


def named(record: RunRecord, *names: str) -> RunRecord:
    """The record with other names wherever a name can stand."""
    strategies = [
        replace(
            strategy,
            strategy=name,
            device=f"Device<{name}>",
            reference=i == 0,
            trace=renamed(strategy.trace, name),
        )
        for i, (strategy, name) in enumerate(zip(record.strategies, names))
    ]
    whole = replace(
        record,
        title=names[0],
        warnings=names,
        stopped=names[0],
        workload={"name": names[0], names[0]: names[0]},
        config={names[0]: list(names)},
        machine=replace(
            record.machine, cpu=names[0], blas=None, openblas_variables={names[0]: names[0]}
        ),
    )
    return derived_anew(whole, *strategies)


def renamed(trace: Trace, name: str) -> Trace:
    return replace(
        trace,
        timeline=tuple(replace(p, op=name) for p in trace.timeline),
        nodes=tuple(replace(n, op=name, fate=name) for n in trace.nodes),
        lives=tuple(replace(life, why=name) for life in trace.lives),
    )


def derived_anew(record: RunRecord, *strategies: StrategyRecord) -> RunRecord:
    """The record with these strategies and no figure left from what it was before."""
    bare = [replace(s, times=None, ratios=None, judgement=None) for s in strategies]
    return analysed(replace(record, strategies=tuple(bare)))


def untraced(strategy: StrategyRecord) -> StrategyRecord:
    return replace(strategy, trace=Trace((), (), (), (), cut=False))


def records() -> dict[str, RunRecord]:
    two = profile(SiluWorkload(3, 8), plan=Plan(reps=6))
    with mock.patch("ckptcli.profiling.trace.MOST_ENTRIES", 7):
        cut = profile(SiluWorkload(3, 8), plan=Plan(reps=1))
    first, second = two.strategies
    many = [replace((first, second)[i % 2], strategy=f"s{i}", reference=i == 0) for i in range(10)]
    return {
        "two strategies": two,
        "one strategy": derived_anew(two, first),
        "cut trace": cut,
        "no reference": derived_anew(two, second),
        "no samples": derived_anew(
            replace(two, partial=True), *(replace(s, samples=(), warmup=()) for s in two.strategies)
        ),
        "few samples": derived_anew(
            two, *(replace(s, samples=s.samples[:2]) for s in two.strategies)
        ),
        "nothing traced": derived_anew(two, *map(untraced, two.strategies)),
        "no strategy": derived_anew(two),
        "unicode names": named(two, UNICODE, "ß"),
        "nasty names": named(two, NASTY, NASTY + "2"),
        "many strategies": derived_anew(two, *many),
    }


RECORDS = records()


@pytest.fixture(params=RECORDS, ids=str)
def record(request: pytest.FixtureRequest) -> RunRecord:
    return RECORDS[request.param]


def rendered(name: str, record: RunRecord) -> str:
    content = exporter_for("-", name).render(record)
    assert isinstance(content, str)
    return content


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", registry())
def test_every_format_takes_every_record(name: str, record: RunRecord) -> None:
    if name == "png" and not PLOT:
        pytest.skip("matplotlib is not installed")
    exporter = exporter_for("-", name)
    content = exporter.render(record)
    assert isinstance(content, bytes) == exporter.binary
    assert content == exporter.render(record), "the same record gives the same content"
    if isinstance(content, str):
        assert content.endswith("\n")


def test_json_reads_back(record: RunRecord) -> None:
    assert read_record(rendered("json", record), "x") == record


def test_csv_has_a_row_for_each_sample(record: RunRecord) -> None:
    header, *rows = csv.reader(io.StringIO(rendered("csv", record), newline=""))
    assert tuple(header) == CSV_HEADER
    position = 0
    for strategy in record.strategies:
        phases = [("warmup", s) for s in strategy.warmup] + [
            ("counted", s) for s in strategy.samples
        ]
        for number, (phase, sample) in enumerate(phases):
            assert rows[position] == [
                strategy.strategy.replace("\0", "\ufffd"),
                phase,
                "0",
                str(number),
                repr(sample.forward_s),
                repr(sample.backward_s),
                repr(sample.total_s),
                str(sample.repeats),
            ]
            position += 1
    assert position == len(rows)


def test_csv_counts_the_rounds_of_each_process() -> None:
    two = RECORDS["two strategies"]
    first = two.strategies[0]
    samples = tuple(replace(s, process=i % 2) for i, s in enumerate(first.samples))
    text = rendered("csv", replace(two, strategies=(replace(first, warmup=(), samples=samples),)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["process"], row["round"]) for row in rows] == [
        (str(i % 2), str(i // 2)) for i in range(6)
    ]


def test_markdown_has_a_whole_table(record: RunRecord) -> None:
    text = rendered("md", record)
    table = [line for line in text.split("\n") if line.startswith("|")]
    assert len(table) == 2 + len(record.strategies)
    for line in table:
        assert len(re.findall(r"(?<!\\)\|", line)) == len(HEADER) + 1
    assert set(table[1]) <= set("|-: ")
    assert not re.search("[<\x00\udc80]", text)
    assert "\r" not in text
    for strategy in record.strategies:
        if strategy.judgement is not None:
            assert strategy.judgement.word in text


class Page(HTMLParser):
    """Checks that tags nest; collects tags, attributes and text."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_html_is_whole_and_alone(record: RunRecord) -> None:
    text = rendered("html", record)
    page = parsed(text)
    assert not {"script", "img", "iframe", "object", "b", "a"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert [value for name, value in page.attributes if name in ("src", "href")] == ["data:,"]
    assert not re.search(r"https?:|url\(|@import", text)
    shown = " ".join(page.text)
    for strategy in record.strategies:
        assert escaped_text(strategy.strategy) in shown
    for warning in record.warnings:
        assert escaped_text(warning) in shown


def escaped_text(text: str) -> str:
    """What a reader sees of `text`; the parser reads a return as it is."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def test_html_has_every_part() -> None:
    two = RECORDS["two strategies"]
    page = parsed(rendered("html", two))
    shown = " ".join(page.text)
    for line in (
        "retrieve_node_output NodeId { value: 11 }: 1 node(s) to compute",
        "execute_retro_forward NodeId { value: 4 }",
        "Reproduce",
        "Machine",
        two.strategies[1].device,
        two.strategies[1].judgement.reason if two.strategies[1].judgement else "",
    ):
        assert line in shown
    titles = [value for name, value in page.attributes if name == "title"]
    assert "node 4, matmul of 3, 0, [8, 8] 256 B: saved, used 4 times in backward" in titles
    nodes = sum(len(strategy.trace.nodes) for strategy in two.strategies)
    assert sum(title.startswith("node ") for title in titles) == nodes


def test_html_is_shown_as_far_as_it_goes() -> None:
    shown = " ".join(parsed(rendered("html", RECORDS["no samples"])).text)
    assert "partial: the run ended early" in shown
    assert "Nothing was timed" in shown


def test_svg_is_xml_and_names_each_op(record: RunRecord) -> None:
    text = rendered("svg", record)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG_SPACE}svg"
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\b(nan|inf)\b|\bid=", text)
    titles = [title.text or "" for title in root.iter(f"{SVG_SPACE}title")]
    span = common_span(curve(s.strategy, s.trace) for s in record.strategies)
    assert len(titles) == span.ops
    words = "\n".join(titles)
    for strategy in record.strategies:
        for point in strategy.trace.timeline:
            assert f"node {point.node}" in words


def test_svg_says_what_happens_at_an_op() -> None:
    root = ElementTree.fromstring(rendered("svg", RECORDS["two strategies"]))
    first, *_ = root.iter(f"{SVG_SPACE}title")
    assert first.text == (
        "forward, op 1\n"
        "none: matmul, node 4, [8, 8] 256 B; 1.2 KiB live\n"
        "balanced: matmul, node 4, [8, 8] 256 B; 1.2 KiB live"
    )
    words = "\n".join(text.text or "" for text in root.iter(f"{SVG_SPACE}text"))
    assert "none peaks at " in words
    assert "backward, 10 to 15 ops" in words


def test_trace_events_are_valid(record: RunRecord) -> None:
    whole = json.loads(rendered("trace", record))
    by_thread: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named_threads = set()
    for event in whole["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts", "args"} <= set(event)
        assert event["ph"] in {"X", "M", "C"}
        assert event["ts"] >= 0
        assert 1 <= event["pid"] <= len(record.strategies)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["cat"]
            thread = event["pid"], event["tid"]
            by_thread[thread].append((event["ts"], event["ts"] + event["dur"]))
        elif event["name"] == "thread_name":
            named_threads.add((event["pid"], event["tid"]))
    assert set(by_thread) <= named_threads
    for spans in by_thread.values():
        spans.sort()
        for (_, end), (start, _) in zip(spans, spans[1:]):  # noqa: RUF007
            assert end <= start + 1e-6, "events of one thread overlap"


def test_trace_is_the_record(record: RunRecord) -> None:
    events = json.loads(rendered("trace", record))["traceEvents"]
    for process, strategy in enumerate(record.strategies, start=1):
        own = [event for event in events if event["pid"] == process]
        timeline = strategy.trace.timeline
        counted = [event["args"]["bytes"] for event in own if event["ph"] == "C"]
        assert counted == [p.high_bytes for p in timeline] + [p.end_bytes for p in timeline[-1:]]
        ops = [event for event in own if event["ph"] == "X" and event["cat"] != "tensor"]
        assert [(e["cat"], e["args"]["node"]) for e in ops] == [(p.phase, p.node) for p in timeline]
        lives = [event for event in own if event["ph"] == "X" and event["cat"] == "tensor"]
        assert len(lives) == len(strategy.trace.lives)
        assert sum(e["args"]["bytes"] for e in lives) == sum(
            life.bytes for life in strategy.trace.lives
        )
        names = [event for event in own if event["name"] == "process_name"]
        assert [event["args"]["name"] for event in names] == [strategy.strategy]


@pytest.mark.skipif(not PLOT, reason="matplotlib is not installed")
def test_png_is_a_picture() -> None:
    content = exporter_for("timeline.png", None).render(RECORDS["two strategies"])
    assert isinstance(content, bytes)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (1600, 800)
    assert len(content) > 10_000


def test_png_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        exporter_for("timeline.png", None)
    assert caught.value.exit_code == 2
    assert caught.value.hint == "pip install 'ckptcli[plot]'"


def test_the_command_measures_the_same_again() -> None:
    two = RECORDS["two strategies"]
    assert command_line(two) == (
        "ckpt run --strategy none --strategy balanced --workload silu --layers 3 --n 8 --batch 8 "
        "--dtype float32 --seed 0 --reps 6"
    )
    config = {"workload_text": "graph:a b.json#7", "threads": 2, "processes": 1, "warmup": 3}
    graph = replace(two, workload={"name": "graph"}, config=config)
    assert command_line(graph) == (
        "ckpt run --strategy none --strategy balanced --workload 'graph:a b.json#7' "
        "--seed 0 --reps 6 --threads 2 --warmup 3 --processes 1"
    )
    assert command_line(replace(graph, config={})) is None


def test_only_markup_is_taken_as_it_is() -> None:
    assert element("p", "<b>", Markup("<i></i>"), title='"&') == (
        '<p title="&quot;&amp;">&lt;b&gt;<i></i></p>'
    )
    assert element("line", x1=1.0, y1=-0.001, stroke_width=1.256, class_=None) == (
        '<line x1="1" y1="0" stroke-width="1.26"></line>'
    )
    assert escaped("a\x00\x1b\udc80\ufffeb") == "a\ufffd\ufffd\ufffd\ufffdb"


def test_the_peak_is_the_ledgers_with_temporaries_beside_it() -> None:
    record = RECORDS["two strategies"]
    memory = replace(record.strategies[0].memory, traced_peak_forward_bytes=2**30)
    strategy = replace(record.strategies[0], memory=memory)
    (row,) = rows(replace(record, strategies=(strategy,)))
    peak = row[HEADER.index("peak")]
    assert peak.whole == f"{units.size(memory.ledger_peak_bytes)}, with temporaries 1.0 GiB"
