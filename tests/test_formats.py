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

from ckptcli.errors import UsageError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.origin import Origin
from ckptcli.measure.points import Part, common_workload, joined
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Passes, Row
from ckptcli.measure.trace import Trace
from ckptcli.profiling.profile import profile
from ckptcli.report import readings, run_table
from ckptcli.report.charts import common_span, curves_of
from ckptcli.report.compiled_table import compiled_table
from ckptcli.report.drawing.markup import Markup, below, element, escaped
from ckptcli.report.formats import draws_pass, exporter_for, registry
from ckptcli.report.formats.csv import HEADER as CSV_HEADER
from ckptcli.report.gradient_table import gradient_table
from ckptcli.report.run_table import command_line
from ckptcli.visible import visible
from ckptcli.workloads.silu import SiluWorkload
from tests.picture_records import engines, gradient, module, points
from tests.records import TENSOR, compiled_row, none_record, run_record

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
        for i, (strategy, name) in enumerate(zip(record.rows, names))
    ]
    whole = replace(
        record,
        warnings=names,
        stopped=names[0],
        workload={"name": names[0], "title": names[0], names[0]: names[0]},
        config={names[0]: names},
        machine=replace(
            record.machine, cpu=names[0], blas=None, openblas_variables={names[0]: names[0]}
        ),
    )
    return derived_anew(whole, *strategies)


def renamed(trace: Trace, name: str) -> Trace:
    return replace(
        trace,
        timeline=tuple(replace(p, op=name) for p in trace.timeline),
        nodes=tuple(replace(n, op=name, source=name) for n in trace.nodes),
        lives=tuple(replace(life, why=name) for life in trace.lives),
    )


def derived_anew(record: RunRecord, *strategies: Row) -> RunRecord:
    """The record with these strategies and no figure left from what it was before."""
    bare = [replace(s, times=None, ratios=None, judgement=None) for s in strategies]
    return analysed(replace(record, rows=tuple(bare)))


def untraced(strategy: Row) -> Row:
    return replace(strategy, trace=Trace((), (), (), (), cut=False))


def measured_points() -> RunRecord:
    """Two programs of three strategies, one of them of another shape, as they were measured."""
    one, two = (profile(SiluWorkload(n, 8), ["none", "remat"], plan=Plan(reps=6)) for n in (2, 3))
    parts = [Part({"layers": 2, "svd_eps": 1e-12}, one), Part({"layers": 3, "svd_eps": 1e-12}, two)]
    lists = {"layers": "2,3", "svd_eps": "1e-12"}
    return joined(parts, common_workload([one.workload, two.workload], lists))


def records() -> dict[str, RunRecord]:
    two = profile(SiluWorkload(3, 8), plan=Plan(reps=6))
    with mock.patch("ckptcli.profiling.trace.MOST_ENTRIES", 7):
        cut = profile(SiluWorkload(3, 8), plan=Plan(reps=1))
    first, second = two.rows
    many = [replace((first, second)[i % 2], strategy=f"s{i}", reference=i == 0) for i in range(10)]
    return {
        "two strategies": two,
        "one strategy": derived_anew(two, first),
        "cut trace": cut,
        "no reference": derived_anew(two, second),
        "no samples": derived_anew(
            replace(two, partial=True), *(replace(s, passes=Passes()) for s in two.rows)
        ),
        "few samples": derived_anew(
            two, *(replace(s, passes=Passes((), s.samples[:2])) for s in two.rows)
        ),
        "nothing traced": derived_anew(two, *map(untraced, two.rows)),
        "no strategy": derived_anew(two),
        "unicode names": named(two, UNICODE, "ß"),
        "nasty names": named(two, NASTY, NASTY + "2"),
        "many strategies": derived_anew(two, *many),
        "other engines": engines(),
        "a module": module(),
        "one gradient": gradient(),
        "compiled programs": run_record(
            none_record(),
            compiled_row("none", 7 * TENSOR, 6 * TENSOR, {}, {}),
            compiled_row("remat", TENSOR, 5 * TENSOR, {"dot_general": 2}, {"dot_general": 1}),
        ),
        "several programs": points(),
        "measured programs": measured_points(),
    }


RECORDS = records()


@pytest.fixture(params=RECORDS, ids=str)
def record(request: pytest.FixtureRequest) -> RunRecord:
    return RECORDS[request.param]


PICTURED = [name for name, record in RECORDS.items() if curves_of(record)]


@pytest.fixture(params=PICTURED, ids=str)
def pictured(request: pytest.FixtureRequest) -> RunRecord:
    """A record of which at least one row has its pass op by op."""
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
    if draws_pass(exporter) and not curves_of(record):
        with pytest.raises(UsageError, match="no row has one"):
            exporter.render(record)
        return
    content = exporter.render(record)
    assert isinstance(content, bytes) == exporter.binary
    assert content == exporter.render(record), "the same record gives the same content"
    if isinstance(content, str):
        assert content.endswith("\n")


@pytest.mark.parametrize("name", [name for name, known in RECORDS.items() if known.rows])
def test_json_reads_back(name: str) -> None:
    """A file of a run has at least one row."""
    assert read_record(rendered("json", RECORDS[name]), "x") == RECORDS[name]


def of_program(row: Row) -> list[object]:
    """What stands on each sample of a program that was compiled whole."""
    known = row.compiled
    assert known is not None
    seconds = [known.lower_s, known.build_s, known.first_call_s]
    return [known.peak_bytes, known.fresh_process_bytes, *seconds]


def test_csv_has_a_row_for_each_sample(record: RunRecord) -> None:
    header, *rows = csv.reader(io.StringIO(rendered("csv", record), newline=""))
    assert tuple(header) == (*CSV_HEADER, *(name.replace("_", "-") for name in record.varying))
    position = 0
    for strategy in record.rows:
        phases = [("warmup", s) for s in strategy.passes.warmup] + [
            ("counted", s) for s in strategy.samples
        ]
        for number, (phase, sample) in enumerate(phases):
            assert rows[position] == [
                visible(record.name_of(strategy)),
                phase,
                "0",
                str(number),
                "" if sample.forward_s is None else repr(sample.forward_s),
                "" if sample.backward_s is None else repr(sample.backward_s),
                repr(sample.total_s),
                str(sample.repeats),
                *([""] * 5 if strategy.compiled is None else map(str, of_program(strategy))),
                "",  # no step
                *map(repr, strategy.point.values()),
            ]
            position += 1
    assert position == len(rows)


def test_csv_counts_the_rounds_of_each_process() -> None:
    two = RECORDS["two strategies"]
    first = two.rows[0]
    samples = tuple(replace(s, process=i % 2) for i, s in enumerate(first.samples))
    text = rendered("csv", replace(two, rows=(replace(first, passes=Passes((), samples)),)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["process"], row["round"]) for row in rows] == [
        (str(i % 2), str(i // 2)) for i in range(6)
    ]


def test_markdown_has_a_whole_table(record: RunRecord) -> None:
    text = rendered("md", record)
    table = [line for line in text.split("\n") if line.startswith("|")]
    tables = [run_table.table(record), gradient_table(record), compiled_table(record)]
    for drawn in tables:
        if drawn is None:
            continue
        lines, table = table[: 2 + len(drawn.rows)], table[2 + len(drawn.rows) :]
        assert len(lines) == 2 + len(drawn.rows)
        for line in lines:
            assert len(re.findall(r"(?<!\\)\|", line)) == len(drawn.columns) + 1
        assert set(lines[1]) <= set("|-: ")
    assert table == []
    assert not re.search("[<\x00\udc80]", text)
    assert "\r" not in text
    for strategy in record.rows:
        if strategy.judgement is not None:
            assert f": {strategy.judgement.word}: " in text


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
    for strategy in record.rows:
        assert visible(strategy.strategy) in shown
    for warning in record.warnings:
        assert visible(warning) in shown


def test_html_has_every_part() -> None:
    two = RECORDS["two strategies"]
    page = parsed(rendered("html", two))
    shown = " ".join(page.text)
    for line in (
        "retrieve_node_output NodeId { value: 11 }: 1 node(s) to compute",
        "execute_retro_forward NodeId { value: 4 }",
        "Reproduce",
        "Machine",
        two.rows[1].device,
        readings.figures(two.rows[1], two),
    ):
        assert line in shown
    titles = [value for name, value in page.attributes if name == "title"]
    node = "node 4, matmul of 3, 0, [8, 8] 256 B: saved, used 4 times in backward; made at "
    assert [title for title in titles if re.fullmatch(rf"{re.escape(node)}\S+silu.py:\d+", title)]
    nodes = sum(len(strategy.trace.nodes) for strategy in two.rows)
    assert sum(title.startswith("node ") for title in titles) == nodes


@pytest.mark.parametrize("name", ["other engines", "a module", "two strategies"])
def test_every_row_has_a_card_a_colour_and_a_place_in_the_pictures(name: str) -> None:
    """A row with only a reason has a card that says it; one without a peak stands below."""
    record = RECORDS[name]
    text = rendered("html", record)
    cards = re.findall(r'<div class="card"><h3>(.*?)</h3>', text)
    assert len(cards) == len(record.rows)
    for i, (card, row) in enumerate(zip(cards, record.rows)):
        assert f'class="swatch series{i}"' in card
        assert f"<span>{record.label(row)}</span>" in card
        if not row.samples:
            continue
        point = (
            rf'<circle [^>]*class="area series{i}"[^>]*><title>{record.label(row)}: [^<]*, peak '
        )
        assert re.search(point, text)
        lane = rf'<text [^>]*class="ink halo"[^>]*>{record.label(row)}: median '
        assert re.search(lane, text)
        rounds = re.findall(rf'class="area series{i}"[^>]*><title>round (\d+): ', text)
        assert rounds == [str(n + 1) for n in range(len(row.samples))]


def test_rows_keep_their_colours_where_others_have_no_pass() -> None:
    """The second row of two is drawn alone: it has the second colour all the same."""
    first, second = RECORDS["two strategies"].rows
    record = derived_anew(RECORDS["two strategies"], replace(first, trace=None), second)
    picture = rendered("svg", record)
    assert "line series1" in picture
    assert "line series0" not in picture


def test_the_page_names_lines_of_the_program() -> None:
    two = RECORDS["two strategies"]
    row = two.rows[0]
    live = replace(row.memory.peak_live.largest[0], source="mlp.py:12")
    memory = replace(row.memory, peak_live=replace(row.memory.peak_live, largest=(live,)))
    page = parsed(rendered("html", derived_anew(two, replace(row, memory=memory), *two.rows[1:])))
    assert "made at" in page.text
    assert "mlp.py:12" in page.text
    assert "made at" not in parsed(rendered("html", run_record())).text


def test_the_page_has_no_folder_in_its_title_and_says_its_name_once() -> None:
    text = rendered("html", RECORDS["a module"])
    heading = "module mlp.py:make, Sequential with 1,234 parameters"
    assert f"<title>{heading} - ckpt</title>" in text
    assert f"<h1>{heading}</h1>" in text
    graph = run_record(workload={"name": "graph", "title": "graph = a b/c.json:1, ops = 3"})
    assert "<h1>graph c.json:1, ops = 3</h1>" in rendered("html", graph)


def test_page_and_markdown_say_when_where_and_at_which_commit() -> None:
    origin = Origin("2026-01-31T12:00:00Z", "host", "0123456789abcdef" * 2, is_clean=False)
    record = replace(RECORDS["two strategies"], origin=origin)
    line = "2026-01-31 12:00:00 UTC on host, commit 0123456789ab with changes"
    assert line in parsed(rendered("html", record)).text
    assert line in rendered("md", record)
    assert f"{origin.commit} with changes" in parsed(rendered("html", record)).text


def test_page_and_markdown_have_the_table_of_gradients() -> None:
    record = RECORDS["one gradient"]
    assert "lnZ/N = 211.500000000000000" in rendered("md", record)
    for text in (rendered("md", record), rendered("html", record)):
        assert "0.844000000000000" in text
        assert "finite difference = 0.844050000000000" in text


def test_the_legend_of_a_png_is_outside_the_curves() -> None:
    """With more rows the picture is higher, its axes are not lower."""
    if not PLOT:
        pytest.skip("matplotlib is not installed")
    two, many = (
        struct.unpack(">II", exporter_for("a.png", None).render(RECORDS[name])[16:24])  # type: ignore[arg-type]
        for name in ("two strategies", "many strategies")
    )
    assert many[0] == two[0]
    assert many[1] == two[1] + 8 * 40


def test_html_is_shown_as_far_as_it_goes() -> None:
    shown = " ".join(parsed(rendered("html", RECORDS["no samples"])).text)
    assert "partial: the run ended early" in shown
    assert "Nothing was timed" in shown


@pytest.mark.parametrize(
    ("name", "has_intervals"), [("two strategies", True), ("few samples", False)]
)
def test_a_page_speaks_of_intervals_where_there_are_some(name: str, has_intervals: bool) -> None:
    text = rendered("html", RECORDS[name])
    for words in ("with exact 95 % intervals", "Bars: 95 %", "band: its 95 %"):
        assert (words in text) == has_intervals
    assert ("of so few rounds there is no interval" in text) == (not has_intervals)


def test_svg_is_xml_and_names_each_op(pictured: RunRecord) -> None:
    text = rendered("svg", pictured)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG_SPACE}svg"
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\b(nan|inf)\b|\bid=", text)
    titles = [title.text or "" for title in root.iter(f"{SVG_SPACE}title")]
    spans = [common_span(curves_of(part)) for part in pictured.parts]
    assert len(titles) == sum(span.ops for span in spans)
    words = "\n".join(titles)
    for _, trace in pictured.rows_with_trace:
        for point in trace.timeline:
            assert f"node {point.node}" in words


def test_pictures_of_several_programs_are_one_each_under_its_title() -> None:
    several = RECORDS["measured programs"]
    root = ElementTree.fromstring(rendered("svg", several))
    texts = [text.text or "" for text in root.iter(f"{SVG_SPACE}text")]
    assert [text for text in texts if text.startswith("Live bytes, ")] == [
        "Live bytes, silu, n = 8, layers = 2",
        "Live bytes, silu, n = 8, layers = 3",
    ]
    pictures = [*root.iter(f"{SVG_SPACE}svg")][1:]
    tops = [float(re.findall(r"[\d.]+", g.get("transform", ""))[1]) for g in root]
    heights = [float(picture.get("height", "0")) for picture in pictures]
    assert tops == [0.0, heights[0]], "none covers another"
    assert float(root.get("height", "0")) == sum(heights)
    page = rendered("html", several)
    for title in ("Time against peak", "Samples", "Live bytes over the pass"):
        assert [f"<h2>{title}: n = 8, layers = {n}</h2>" in page for n in (2, 3)] == [True, True]
    assert "layers=2 svd-eps=1e-12 remat" in page


@pytest.mark.skipif(not PLOT, reason="matplotlib is not installed")
def test_a_png_of_several_programs_is_as_high_as_they_are() -> None:
    def size(record: RunRecord) -> tuple[int, int]:
        content = exporter_for("-", "png").render(record)
        assert isinstance(content, bytes)
        found: tuple[int, int] = struct.unpack(">II", content[16:24])
        return found

    several = RECORDS["measured programs"]
    (wide, high), *parts = map(size, (several, *several.parts))
    assert {width for width, _ in parts} == {wide}
    assert high == sum(height for _, height in parts)


def test_svg_says_what_happens_at_an_op() -> None:
    root = ElementTree.fromstring(rendered("svg", RECORDS["two strategies"]))
    first, *_ = root.iter(f"{SVG_SPACE}title")
    assert first.text == (
        "forward, op 1\n"
        "none: matmul, node 4, [8, 8] 256 B; 1.2 KiB live\n"
        "balanced: matmul, node 4, [8, 8] 256 B; 1.2 KiB live"
    )
    words = "\n".join(text.text or "" for text in root.iter(f"{SVG_SPACE}text"))
    assert "none: at most " in words
    assert "backward, 10 to 15 ops" in words


def test_trace_events_are_valid(pictured: RunRecord) -> None:
    whole = json.loads(rendered("trace", pictured))
    by_thread: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named_threads = set()
    for event in whole["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts", "args"} <= set(event)
        assert event["ph"] in {"X", "M", "C"}
        assert event["ts"] >= 0
        assert 1 <= event["pid"] <= len(pictured.rows)
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


def test_trace_is_the_record(pictured: RunRecord) -> None:
    events = json.loads(rendered("trace", pictured))["traceEvents"]
    for process, (strategy, trace) in enumerate(pictured.rows_with_trace, start=1):
        own = [event for event in events if event["pid"] == process]
        timeline = trace.timeline
        counted = [event["args"]["bytes"] for event in own if event["ph"] == "C"]
        assert counted == [p.high_bytes for p in timeline] + [p.end_bytes for p in timeline[-1:]]
        ops = [event for event in own if event["ph"] == "X" and event["cat"] != "tensor"]
        assert [(e["cat"], e["args"]["node"]) for e in ops] == [(p.phase, p.node) for p in timeline]
        lives = [event for event in own if event["ph"] == "X" and event["cat"] == "tensor"]
        assert len(lives) == len(trace.lives)
        assert sum(e["args"]["bytes"] for e in lives) == sum(life.bytes for life in trace.lives)
        names = [event for event in own if event["name"] == "process_name"]
        assert [event["args"]["name"] for event in names] == [pictured.label(strategy)]


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
    graph = replace(two, workload={"name": "graph", "title": "graph = b.json"}, config=config)
    assert command_line(graph) == (
        "ckpt run --strategy none --strategy balanced --workload 'graph:a b.json#7' "
        "--seed 0 --threads 2 --reps 6 --warmup 3 --processes 1"
    )
    assert command_line(replace(graph, config={})) is None


def test_only_markup_is_taken_as_it_is() -> None:
    assert element("p", "<b>", Markup("<i></i>"), title='"&') == (
        '<p title="&quot;&amp;">&lt;b&gt;<i></i></p>'
    )
    assert element("line", x1=1.0, y1=-0.001, stroke_width=1.256, class_=None) == (
        '<line x1="1" y1="0" stroke-width="1.26"></line>'
    )
    assert escaped("a\x00\x1b\n\udc80\ufffeb") == r"a\x00\x1b\x0a\x80\ufffeb"
    assert below(["<", "a\nb"]) == "&lt;\na\\x0ab"
