"""What the pages show is what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ckptcli.cli.main import COMMANDS, run_command
from ckptcli.report.looks import WHYS

ROOT = Path(__file__).parent.parent


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.S)


def test_the_readmes_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("README.md", "python")
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[")


def test_the_example_of_traced_tensors_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = blocks("docs/traced.md", "python")
    (printed,) = blocks("docs/traced.md", "text")
    exec(compile(program, "docs/traced.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_readmes_graph_file_is_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (program,) = blocks("README.md", "json")
    (tmp_path / "g.json").write_text(program)
    assert run_command(["log", "--workload", f"graph:{tmp_path / 'g.json'}"]) == 0
    assert "NodeId { value: 0 }" in capsys.readouterr().out


def test_the_example_of_a_graph_file_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program, printed = blocks("docs/graph-files.md", "json")
    (tmp_path / "g.json").write_text(program)
    arguments = ["log", "--workload", f"graph:{tmp_path / 'g.json'}", "--level", "basic", "--json"]
    assert run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(printed)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


def test_the_readmes_commands_install_the_tree_itself() -> None:
    """A copy in `.venv` would shadow the tree that `scripts/test` works on."""
    (first,) = [block for block in blocks("README.md", "sh") if "pip install" in block]
    commands = re.findall(r"pip install (.*)", first)
    assert commands
    assert all(command.startswith("-q -e .") for command in commands)


def test_no_help_has_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], *([name] for name in COMMANDS)):
        assert run_command([*command, "--help"]) == 0
        text = capsys.readouterr().out
        assert [c for c in text if not c.isprintable() and c != "\n"] == [], command


def test_the_explained_log_is_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = "docs/reading-the-output.md"
    (command,) = blocks(page, "console")
    (printed,) = blocks(page, "text")
    assert run_command(command.removeprefix("$ ckpt ").split()) == 0
    assert capsys.readouterr().out == printed


def test_the_page_has_every_reason_at_the_peak() -> None:
    text = (ROOT / "docs/reading-the-output.md").read_text().partition("## What is live")[2]
    assert set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.M)) == set(WHYS)
