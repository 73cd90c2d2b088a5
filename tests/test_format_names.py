"""How a format is chosen, by its name or a suffix, and the page that says so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.report.formats import exporter_for, registry

PAGE = (Path(__file__).parent.parent / "docs" / "exports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.json", "json"),
        ("a.trace.json", "trace"),
        ("dir.csv/a.TRACE.JSON", "trace"),
        ("a.csv", "csv"),
        ("a.md", "md"),
        ("a.html", "html"),
        ("a.svg", "svg"),
    ],
)
def test_the_longest_suffix_says_the_format(path: str, name: str) -> None:
    assert exporter_for(path, None).name == name


def test_a_format_given_by_name_wins() -> None:
    assert exporter_for("a.json", "csv").name == "csv"
    assert exporter_for("-", "trace").name == "trace"


def test_suffixes_are_unique() -> None:
    suffixes = [suffix for exporter in registry().values() for suffix in exporter.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown format `jsn`; did you mean `json`"):
        exporter_for("-", "jsn")
    with pytest.raises(UsageError, match=r"`a\.txt` does not tell the format.*\.trace\.json"):
        exporter_for("a.txt", None)
    with pytest.raises(UsageError, match="add --format"):
        exporter_for("-", None)


@pytest.mark.slow
def test_every_command_of_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ ckpt (.*)$", PAGE, flags=re.M)
    assert len(commands) == 5
    for command in commands:
        assert run_command(shlex.split(command)) == 0, command
        assert capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        set(re.findall(r"--export (\w\S+)", " ".join(commands)))
    )


def test_the_page_names_every_format() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`\..*?) \|", PAGE, flags=re.M)
    assert {name: tuple(re.findall(r"`(.*?)`", suffixes)) for name, suffixes in rows} == {
        name: exporter.suffixes for name, exporter in registry().items()
    }
