"""A subject of `ckpt run` is one file: everything that a run can do works on it at once."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from ckptcli.cli import subjects
from ckptcli.cli.main import run_command

FILE = """
from dataclasses import replace
from ckptcli.cli.subjects.base import Profile
from tests.records import engine_row, run_record
from ckptcli.measure.memory import held_alone
from ckptcli.measure.row import Outcome
from ckptcli.options.effects import Kind

class SUBJECT:
    engine_names = ()

    def __init__(self, options, line):
        self.options = options

    @staticmethod
    def named_by(options):
        return "--workload abacus" if options.program.workload_text == "abacus" else None

    @staticmethod
    def kind(options):
        return Kind("workload", "beads")

    def profile(self, options):
        return Beads()

class Beads(Profile):
    row_names = ("none", "half")
    has_reference = True

    def open(self, engines):
        return ["beads may stick"]

    def measure(self, measurement):
        rows = [
            engine_row(
                "abacus", name, times_s=[(0.1 * k, 0.2 * k, 0.3 * k)] * 9,
                memory=replace(held_alone(held, 2), ledger_peak_backward_bytes=peak),
                outcome=Outcome(1.0, None, None, {}),
            )
            for name, k, held, peak in (("none", 1.0, 4096, 8192), ("half", 1.5, 2048, 4096))
        ]
        record = run_record(*rows, config=measurement.config)
        measurement.finished(record)
        return record
"""


@pytest.fixture
def abacus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "abacus.py").write_text(FILE)
    monkeypatch.setattr(subjects, "__path__", [*subjects.__path__, str(tmp_path / "kinds")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    return run_command(["run", "--workload", "abacus", *arguments])


def test_it_is_printed_exported_judged_shown_and_compared(
    abacus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = ("a.json", "a.csv", "a.md", "a.html")
    assert run(*(word for name in exports for word in ("--export", name))) == 0
    captured = capsys.readouterr()
    assert "half: effective: peak 4.0 KiB instead of 8.0 KiB (-50 %)" in captured.out
    assert "warning: beads may stick" in captured.err
    data = json.loads((abacus / "a.json").read_text())
    assert [row["engine"] for row in data["strategies"]] == ["abacus", "abacus"]
    with (abacus / "a.csv").open() as file:
        assert [row["strategy"] for row in csv.DictReader(file)] == ["none"] * 9 + ["half"] * 9
    assert "effective" in (abacus / "a.md").read_text()
    assert "effective" in (abacus / "a.html").read_text()
    for command in (["show", "a.json"], ["compare", "a.json", "a.json"]):
        assert run_command(command) == 0
        assert "half" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a.svg", "a.trace.json"])
def test_a_picture_of_the_pass_that_it_has_not_is_refused_before_it_is_measured(
    abacus: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run("--export", name) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "shows the pass op by op, and no row has one" in captured.err
    assert not (abacus / name).exists()


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("peak_bytes > -40%", 0),
        ("peak_bytes > -60%", 3),
        ("half.time > 40%", 3),
        ("half.time > 60%", 0),
    ],
)
@pytest.mark.usefixtures("abacus")
def test_conditions_look_at_it(condition: str, code: int) -> None:
    assert run("--fail-on", condition, "-q") == code


@pytest.mark.usefixtures("abacus")
def test_without_it_the_workload_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "-l", "1", "-n", "4", "--reps", "1", "-q"]) == 0
    assert "balanced" in capsys.readouterr().out


def test_no_command_asks_which_subject_it_is_about() -> None:
    """But for the subjects themselves: a further one would not be asked for."""
    folder = Path(subjects.__path__[0])
    asking = [
        path.name
        for path in folder.parent.glob("*.py")
        if re.search(r"options\.peers\.module_text|options\.function\.", path.read_text())
    ]
    assert asking == []


@pytest.mark.slow
def test_a_module_is_judged_by_conditions_and_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the page on PyTorch, and what reads its record."""
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "def make():\n"
        "    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())] * 1\n"
        "    layers += [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())]\n"
        "    return torch.nn.Sequential(*layers), torch.ones(64, 8)\n"
    )
    module = ("--module", f"{tmp_path}/net.py:make", "--reps", "2", "-q")
    page, saved = tmp_path / "page.html", tmp_path / "a.json"
    assert run_command(["run", *module, "--export", str(page), "--export", str(saved)]) == 0
    assert run_command(["run", *module, "--fail-on", "saved_bytes < 0%"]) == 3
    assert run_command(["run", *module, "--fail-on", "remat.saved_bytes > 0%"]) == 0
    assert run_command(["run", *module, "--processes", "2", "--json"]) == 0
    *_, text = capsys.readouterr().out.partition('{\n  "schema"')
    merged = json.loads('{\n  "schema"' + text)
    assert merged["processes"] == 2
    assert {row["strategy"] for row in merged["strategies"]} == {"none", "remat"}
    assert "remat" in page.read_text()
    assert run_command(["show", str(saved)]) == 0
    assert run_command(["compare", str(saved), str(saved)]) == 0
    assert "remat" in capsys.readouterr().out
