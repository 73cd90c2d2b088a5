"""Text of others on a terminal: escape sequences are written out, wherever the text comes from."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import RecordFileError
from ckptcli.measure.record_json import read_record, record_object
from ckptcli.visible import visible
from tests.fuzz_record import places
from tests.records import balanced_record, none_record, run_record

CKPT = [sys.executable, "-m", "ckptcli"]
EVIL = "\x1b]0;own\x07\x1b[2J\x9b31m\u202egnp\u2066\rover\x7f\u200b"
WRITTEN = "\\x1b]0;own\\x07\\x1b[2J\\x9b31m\\u202egnp\\u2066\\rover\\x7f\\u200b".replace(
    "\\r", "\\x0d"
)


def ckpt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*CKPT, *arguments], capture_output=True, cwd=folder, timeout=60)


def shown(done: subprocess.CompletedProcess[bytes]) -> str:
    """All that a terminal would get; nothing of it is hidden."""
    text = (done.stdout + done.stderr).decode()
    assert visible(text, keep="\n") == text
    assert "Traceback" not in text
    return text


def test_what_is_written_out() -> None:
    assert visible(EVIL) == WRITTEN
    assert visible(WRITTEN) == WRITTEN
    assert visible("a\tb\nc", keep="\n") == "a\\x09b\nc"
    assert visible("a\tb\r\nc\uffff") == "a\\x09b\\x0d\\x0ac\\uffff"
    assert visible("\udcff\ud800\U000e0041") == "\\xff\\ud800\\U000e0041"
    assert visible("日本語 µ─▁ 👩‍🚀".replace("\u200d", "")) == "日本語 µ─▁ 👩🚀"


def with_evil_texts(evil_text: str = EVIL) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run, and the same with every text evil that may be any text."""
    whole = record_object(run_record(none_record(), balanced_record()))
    evil = copy.deepcopy(whole)
    changes = 0
    for container, key in list(places(evil)):
        before = container[key]
        if not isinstance(before, str) or key in ("schema", "strategy"):
            continue
        container[key] = evil_text
        try:
            read_record(json.dumps(evil), "")
            changes += 1
        except RecordFileError:
            container[key] = before
    for row in evil["strategies"]:
        row["strategy"] += evil_text
    assert changes > 10
    return whole, evil


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "b.json"],
        ["show", "b.json", "-v"],
        ["show", "b.json", "--stats", "--hist", "--timeline"],
        ["compare", "b.json", "b.json"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
@pytest.mark.slow
def test_a_record(tmp_path: Path, arguments: list[str]) -> None:
    whole, evil = with_evil_texts()
    (tmp_path / "a.json").write_text(json.dumps(whole))
    (tmp_path / "b.json").write_text(json.dumps(evil))
    done = ckpt(tmp_path, *arguments)
    text = shown(done)
    assert done.returncode == 0, text
    assert "\\x1b" in text


FORGED = "\nFORGED\r\n\tFORGED\x85FORGED\u2028FORGED"
VIEWS = (
    *(["show", "b.json", *more] for more in ([], ["-v"], ["--stats"], ["--hist"], ["--timeline"])),
    ["compare", "b.json", "b.json"],
    ["compare", "a.json", "b.json", "--allow-different-machines", "--fail-on", "time > 5%"],
    *(
        ["show", "b.json", "--force", "--export", f"out.{suffix}"]
        for suffix in ("csv", "md", "html", "svg")
    ),
    ["compare", "b.json", "b.json", "--force", "--export", "out.md"],
)


@pytest.mark.slow
def test_a_record_is_shown_as_the_same_with_its_texts_written_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text begins a line or moves a column, in anything that shows a record but JSON."""
    monkeypatch.chdir(tmp_path)
    shown: list[list[str]] = []
    for text in (FORGED, visible(FORGED)):
        whole, evil = with_evil_texts(text)
        evil["workload"].update(whole["workload"])  # of a path in a title the name alone is shown
        Path("a.json").write_text(json.dumps(whole))
        Path("b.json").write_text(json.dumps(evil))
        shown.append([])
        for arguments in VIEWS:
            code = run_command(arguments)
            screen = "".join(capsys.readouterr())
            is_file = "--export" in arguments and code == 0
            shown[-1].append(Path(arguments[-1]).read_text() if is_file else screen)
    for arguments, first, second in zip(VIEWS, *shown):
        assert "FORGED" in first
        assert first == second, arguments


@pytest.mark.parametrize("arguments", [["log"], ["check"], ["saved"], ["log", "--explain"]])
def test_no_name_of_a_file_begins_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    if os.name != "posix":
        pytest.skip("needs a file system that takes any name")
    monkeypatch.chdir(tmp_path)
    right, wrong = f"a{FORGED}.json", f"b{FORGED}.json"
    case = {"ops": [{"op": "leaf", "req": True, "data": [1.0]}, {"op": "exp", "in": [0]}]}
    Path(right).write_text(json.dumps(case))
    Path(wrong).write_text("{")
    for name, expected in ((right, 0), (wrong, 2), (f"none{FORGED}", 2)):
        assert run_command([*arguments, "--workload", f"graph:{name}"]) == expected
        text = "".join(capsys.readouterr())
        assert [line for line in text.splitlines() if line.lstrip().startswith("FORGED")] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "case",
    [
        {"ops": [{"op": EVIL}]},
        {"ops": [{"op": "leaf", "req": True, "data": [1.0], EVIL: 1}]},
        {"ops": [{"op": "leaf", "req": EVIL, "data": [1.0]}]},
        {"ops": [{"op": "leaf", "data": [EVIL]}]},
        {"strategy": EVIL, "ops": [{"op": "leaf", "req": True, "data": [1.0]}]},
        {"ops": EVIL},
    ],
    ids=["op", "key", "flag", "data", "strategy", "ops"],
)
def test_a_graph_file(tmp_path: Path, case: dict[str, Any]) -> None:
    (tmp_path / "g.jsonl").write_text(json.dumps(case, ensure_ascii=False))
    done = ckpt(tmp_path, "log", "--workload", "graph:g.jsonl")
    assert done.returncode == 2
    assert "\\x1b" in shown(done) or "\\u001b" in shown(done)


def test_a_burn_toml(tmp_path: Path) -> None:
    name = json.dumps(EVIL)
    (tmp_path / "burn.toml").write_text(f"[ckpt]\n{name} = 1\nlayers = {name}\nworkload = {name}\n")
    assert "\\x1b" in shown(ckpt(tmp_path, "log"))
    assert "\\u001b" in shown(ckpt(tmp_path, "config"))


@pytest.mark.skipif(os.name != "posix", reason="needs a file system that takes any name")
@pytest.mark.slow
def test_names_of_files_and_lines_of_a_users_file(tmp_path: Path) -> None:
    name = EVIL.replace("/", "")
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{name}.py").write_text(
        f'def make(device):\n    raise ValueError("{EVIL.replace(chr(13), "")}")\n'
    )
    done = ckpt(folder, "log", "--workload", f"{name}.py:make")
    assert done.returncode == 1
    assert "failed at" in shown(done)
    assert ckpt(folder, "show", name).returncode == 2
    assert "\\x1b" in shown(ckpt(folder, "show", name))


@pytest.mark.slow
def test_an_export_to_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    _, evil = with_evil_texts()
    (tmp_path / "b.json").write_text(json.dumps(evil))
    theirs, ours = pty.openpty()
    command = [*CKPT, "show", "b.json", "--export", "-", "--format", "csv"]
    process = subprocess.Popen(command, stdout=ours, stderr=ours, cwd=tmp_path)
    os.close(ours)
    chunks = []
    while True:
        try:
            chunks.append(os.read(theirs, 65536))
        except OSError:  # the other end is closed
            break
        if not chunks[-1]:
            break
    process.wait(60)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    assert visible(text, keep="\n") == text
    assert text.startswith("strategy,phase")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
def test_a_cell_of_csv_is_text(tmp_path: Path, begin: str) -> None:
    data = record_object(run_record(none_record(), balanced_record()))
    data["strategies"][1]["strategy"] = f"{begin}HYPERLINK(1)"
    (tmp_path / "b.json").write_text(json.dumps(data))
    done = ckpt(tmp_path, "show", "b.json", "--export", "b.csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.reader(io.StringIO((tmp_path / "b.csv").read_bytes().decode(), newline="")))
    assert {row[0] for row in rows[1:]} == {"none", f"'{begin}HYPERLINK(1)"}
