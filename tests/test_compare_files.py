"""A comparison for a pull request: whole tables, the sentences of the screen, nothing as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.compare import compare
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_json
from ckptcli.report.compare_files import Comparisons, JsonComparison, MarkdownComparison
from ckptcli.report.compare_table import readings
from tests.records import TENSOR, balanced_record, none_record, run_record


def smaller() -> RunRecord:
    """A run in which `balanced` holds one tensor less and peaks a tensor lower."""
    memory = balanced_record().memory
    assert memory is not None
    less = replace(
        memory,
        saved_bytes=memory.saved_bytes - TENSOR,
        **{
            f"{kind}_peak_{phase}_bytes": getattr(memory, f"{kind}_peak_{phase}_bytes") - TENSOR
            for kind in ("ledger", "traced")
            for phase in ("forward", "backward")
        },
    )
    return run_record(none_record(), balanced_record(memory=less))


def test_a_row_a_strategy_says_what_was_and_what_is() -> None:
    comparison = compare(run_record(), smaller())
    text = MarkdownComparison().render(Comparisons("base.json", ["new.json"], [comparison]))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.count("|") for line in table] == [9] * 4
    none, balanced = table[2:]
    assert none.startswith("| none | 20.0 MiB | 38.0 MiB | 0 | 100.20ms ")
    assert balanced.startswith(
        "| balanced | 4.0 MiB, from 8.0 MiB, -50.0 % | 30.0 MiB, from 34.0 MiB, -11.8 % | 3 | "
    )
    assert balanced.endswith(" | unclear | identical |")


def test_the_sentences_of_the_screen_follow() -> None:
    comparison = compare(run_record(), smaller())
    text = MarkdownComparison().render(Comparisons("base.json", ["new.json"], [comparison]))
    assert text.startswith("### silu, n = 1024, layers = 2: compared with base.json\n")
    assert text.endswith("\n")
    sentences = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
    assert [line.replace("\\`", "`") for line in sentences] == list(readings(comparison))


def test_each_new_run_has_a_section() -> None:
    comparisons = [compare(run_record(), smaller()), compare(run_record(), run_record())]
    text = MarkdownComparison().render(Comparisons("base.json", ["a.json", "b.json"], comparisons))
    assert re.findall(r"^new: (\S+):", text, flags=re.M) == ["a.json", "b.json"]
    assert text.count("| strategy |") == 2


def test_names_are_shown_as_they_are() -> None:
    rows = none_record(), balanced_record(strategy="<b>|x")
    record = run_record(*rows)
    text = MarkdownComparison().render(
        Comparisons("a|b.json", ["*c*.json"], [compare(record, record)])
    )
    assert "&lt;b&gt;\\|x" in text
    assert "compared with a\\|b.json" in text
    assert "new: \\*c\\*.json" in text


def test_the_json_is_the_one_that_the_command_prints() -> None:
    comparison = compare(run_record(), smaller())
    data = json.loads(JsonComparison().render(Comparisons("base.json", ["new.json"], [comparison])))
    assert data["schema"] == "ckpt.compare/1"
    (entry,) = data["comparisons"]
    assert entry["new"]["file"] == "new.json"
    assert entry["strategies"][1]["peak_bytes"]["percent"] < -11.0


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").write_text(record_json(run_record()), encoding="utf-8")
    return "run.json"


def test_the_command_writes_them_and_still_prints_its_screen(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--export", "c.md", "--export", "c.json")
    assert run_command(["compare", saved, saved, *files]) == 0
    assert "new / base" in capsys.readouterr().out
    assert (tmp_path / "c.md").read_text().startswith("### ")
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "ckpt.compare/1"
    assert run_command(["compare", saved, saved, *files]) == 2, "they exist"
    assert run_command(["compare", saved, saved, *files, "--force"]) == 0


def test_stdout_takes_one_alone(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", saved, saved, "--export", "-", "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("### ")
    assert run_command(["compare", saved, saved, "--export", "-", "--format", "html"]) == 2
    assert "unknown format `html`" in capsys.readouterr().err
    assert run_command(["compare", saved, saved, "--export", "page.html"]) == 2
    assert "known suffixes: .json .markdown .md" in capsys.readouterr().err


def test_a_saved_run_becomes_a_page(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["show", saved, "--export", "page.html", "--export", "run.csv"]) == 0
    assert "balanced: effective" in capsys.readouterr().out
    assert "<!DOCTYPE html>" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "run.csv").read_text().startswith("strategy,phase")


def test_runs_of_memory_alone_are_compared_without_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "-n", "4", "-l", "1", "--memory-only", "-q"]
    for name in ("base.json", "new.json"):
        assert run_command([*words, "--export", name]) == 0
    capsys.readouterr()
    assert run_command(["compare", "base.json", "new.json"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("no time verdict: a run has no times") == 1
    assert "peak" in shown
    for word in ("n/a", "unclear", "method", "forward "):
        assert word not in shown
