"""The screens of a saved run."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.histogram import histogram
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_json
from ckptcli.measure.rounds import Plan
from ckptcli.measure.statistics import describe
from ckptcli.profiling.profile import profile
from ckptcli.report.console import Screen, render_run
from ckptcli.report.distribution import histogram_text
from ckptcli.workloads.silu import SiluWorkload
from tests.picture_records import module
from tests.records import balanced_record, changed, none_record, run_record

Show = Callable[..., str]

SPREAD = tuple(0.100 + 0.001 * i for i in range(20))


@pytest.fixture
def show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Show:
    """Write a record, show it with these options, return what is printed."""
    monkeypatch.chdir(tmp_path)

    def run(record: RunRecord, *options: str, code: int = 0) -> str:
        (tmp_path / "a.json").write_text(record_json(record), encoding="utf-8")
        assert run_command(["show", "a.json", *options]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return run


def test_warnings_go_to_stderr_as_those_of_a_run(
    show: Show, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = show(run_record(warnings=("the machine was busy",)))
    assert "busy" not in shown
    assert run_command(["show", "a.json"]) == 0
    assert capsys.readouterr().err == "warning: the machine was busy\n"
    assert run_command(["show", "a.json", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_quiet_it_is_the_answer_and_the_table_alone_as_of_a_run(show: Show) -> None:
    record = run_record()
    quiet = show(record, "-q")
    assert quiet == render_run(record, Screen(120), quiet=True)
    assert len(quiet) < len(show(record)) / 2


@pytest.mark.parametrize(
    "options", [["--timeline"], ["--export", "t.svg"], ["--export", "t.png"]], ids=str
)
def test_a_picture_of_the_pass_is_refused_where_no_row_has_one(
    show: Show, tmp_path: Path, options: list[str]
) -> None:
    if "t.png" in options:
        pytest.importorskip("matplotlib")
    told = show(module(), *options, code=2)
    assert "shows the pass op by op, and no row has one" in told
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_partial_run_is_marked_once(is_quiet: bool) -> None:
    text = render_run(run_record(partial=True), Screen(200), quiet=is_quiet)
    assert text.count("partial: the run ended early") == 1
    assert "partial" not in render_run(run_record(), Screen(200), quiet=is_quiet)


# The pure part.


def test_a_description_of_samples() -> None:
    described = describe([float(i) for i in range(1, 22)])
    assert (described.count, described.median, described.mean) == (21, 11.0, 11.0)
    assert (described.low, described.high) == (6.0, 16.0)
    assert (described.least, described.p5, described.p95, described.most) == (1.0, 2.0, 20.0, 21.0)
    assert described.deviation == pytest.approx(6.2048, abs=1e-4)
    assert described.iqr_share == pytest.approx(10 / 11)


def test_a_description_of_one_sample() -> None:
    described = describe([3.0])
    assert (described.p5, described.median, described.p95) == (3.0, 3.0, 3.0)
    assert described.deviation is described.low is described.high is None


def test_a_histogram_has_common_bins_and_every_sample() -> None:
    groups = {"a": [1.0, 1.1, 1.2, 2.0], "b": [2.0, 2.5, 3.0, 3.0]}
    found = histogram(groups, bins=4)
    assert found.edges == pytest.approx([1.0, 1.5, 2.0, 2.5, 3.0])
    assert found.counts == {"a": [3, 0, 1, 0, 0], "b": [0, 0, 1, 3, 0]}


def test_a_slow_sample_does_not_flatten_a_histogram() -> None:
    found = histogram({"a": [*SPREAD, *SPREAD, 9.0]})
    assert found.edges[-1] < 0.13
    assert found.counts["a"][-1] == 1
    assert sum(found.counts["a"]) == 41


@pytest.mark.parametrize("samples", [[0.5], [0.5, 0.5, 0.5]])
def test_a_histogram_of_equal_samples(samples: list[float]) -> None:
    found = histogram({"a": samples})
    assert found.counts["a"][0] == len(samples)
    assert histogram_text(found, 60, unicode=False).count("#") > 10


# The command.


def test_the_screen_is_the_one_that_the_run_printed(show: Show) -> None:
    record = profile(SiluWorkload(layers=2, n=8), plan=Plan(reps=2))
    assert show(record) == render_run(record, Screen())
    assert show(record, "-v", "--width", "80") == render_run(record, Screen(80), verbose=True)
    assert "\x1b[" in show(record, "--color", "always")


def test_json_is_the_record(show: Show) -> None:
    record = run_record(warnings=("something",))
    assert show(record, "--json") == record_json(record)


def test_statistics_have_a_table_a_strategy_and_a_column_a_phase(show: Show) -> None:
    out = show(run_record(none_record(SPREAD), balanced_record(SPREAD)), "--stats")
    lines = [line.split() for line in out.splitlines()]
    heads = [["none", "forward", "backward", "total"], ["balanced", "forward", "backward", "total"]]
    assert all(head in lines for head in heads)
    assert ["samples", "20", "20", "20"] in lines
    assert ["median", "43.80ms", "65.70ms", "109.50ms"] in lines
    for row in (
        "95 % low",
        "95 % high",
        "IQR / median",
        "min",
        "p5",
        "p95",
        "max",
        "mean",
    ):
        assert out.count(f"\n{row} ") == 2
    assert out.count("standard deviation") == 2


def test_statistics_of_few_samples_say_what_is_not_known(show: Show) -> None:
    out = show(run_record(none_record([0.1])), "--stats")
    assert out.count("n/a") == 9


def test_a_histogram_counts_every_round(show: Show) -> None:
    out = show(run_record(none_record(SPREAD), balanced_record(SPREAD)), "--hist")
    counts = re.findall(r"^  +\S+ \.\. +(?:[\d.]+ms)? +(\d+)(?: █+)?$", out, flags=re.M)
    assert sum(map(int, counts)) == 2 * len(SPREAD)
    assert "█" in out


def test_views_are_shown_instead_of_the_screen_and_can_be_combined(show: Show) -> None:
    record = run_record()
    timeline = show(record, "--timeline")
    assert timeline.startswith("live bytes over the pass")
    assert "live at the highest point of backward: " in timeline
    together = show(record, "--timeline", "--stats")
    assert together.endswith(timeline)
    assert "standard deviation" in together
    assert "device = " not in together


@pytest.mark.parametrize("options", [("--stats",), ("--hist",)])
@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_screen(show: Show, options: tuple[str, ...], width: int) -> None:
    out = show(run_record(none_record(SPREAD)), *options, "--width", str(width))
    assert max(map(len, out.splitlines())) <= width


def test_ascii_where_the_stream_has_no_more() -> None:
    drawn = histogram_text(histogram({"a": SPREAD}), 60, unicode=False)
    assert drawn.isascii()


def test_a_record_without_rounds(show: Show) -> None:
    empty = run_record(changed(none_record(), samples=()), partial=True)
    assert "partial" in show(empty)
    for option in ("--stats", "--hist"):
        assert "no complete round" in show(empty, option, code=2)
    assert show(empty, "--timeline")


def test_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = record_json(run_record()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
    assert run_command(["show", "-", "--stats"]) == 0
    assert "standard deviation" in capsys.readouterr().out


def test_a_closed_stdin_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run_command(["show", "-"]) == 2
    assert "stdin is closed" in capsys.readouterr().err


def test_names_from_a_file_are_only_text(show: Show) -> None:
    name = "[bold]</script>\u2014名"
    record = run_record(none_record(), balanced_record(strategy=name))
    for options in ((), ("--stats",), ("--hist",), ("--timeline",)):
        assert "</script>" in show(record, *options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "has schema `None`, not `ckpt.run/1`"),
        ('{"schema": "ckpt.run/2"}', "has schema `ckpt.run/2`, this version reads `ckpt.run/1`"),
        ('{"schema": "ckpt.run/1"}', "is not a whole ckpt.run/1 record"),
        ("[" * 100_000, "has a figure that no run can have"),
    ],
)
def test_what_is_no_record_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    assert run_command(["show", str(tmp_path / "a.json")]) == 2
    assert message in capsys.readouterr().err


def test_json_and_a_view_exclude_each_other(show: Show) -> None:
    assert "--json prints the whole record" in show(run_record(), "--json", "--hist", code=2)


# What a file may hold.


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("seed",), "x", "seed is 'x', not a whole number"),
        (("seed",), True, "seed is True, not a whole number"),
        (
            ("machine", "cores"),
            "x",
            "machine.cores is 'x', not a whole number of at least 1 or null",
        ),
        (("strategies", 0, "device"), 3, "strategies[0].device is 3, not a text"),
        (("strategies", 1, "saved_bytes"), 1.5, "strategies[1].saved_bytes is 1.5, not a whole"),
        (
            ("strategies", 0, "trace", "nodes", 2, "parents"),
            ["x"],
            "strategies[0].trace.nodes[2].parents[0] is 'x', not a whole number",
        ),
        (
            ("strategies", 0, "peak_live", "bytes_by_why", "saved"),
            None,
            ".saved is None, not a whole number",
        ),
        (("config",), 3, "config is 3, not an object"),
    ],
)
def test_a_field_of_another_type_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: tuple[str | int, ...],
    value: object,
    message: str,
) -> None:
    data = json.loads(record_json(run_record()))
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    (tmp_path / "a.json").write_text(json.dumps(data))
    assert run_command(["show", str(tmp_path / "a.json")]) == 2
    err = capsys.readouterr().err
    assert f"is not a whole ckpt.run/1 record: {message}" in err or message in err
