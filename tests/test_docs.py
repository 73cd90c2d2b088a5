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


PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))
"""All pages but those at the root."""

OF_OTHERS = {"burn.toml"}
"""Files that are not of this tree."""

OF_PARTS = [page for page in PAGES if page.startswith("docs/decisions/")]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *PAGES])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", *OF_PARTS])
def test_every_path_that_a_page_of_the_code_names_exists(page: str) -> None:
    """From the root or from the package; a word in capitals stands for any."""
    named = re.findall(
        r"`([\w*.-]+/[\w*./-]*|[\w*.-]+\.(?:py|toml|md))`", (ROOT / page).read_text()
    )
    patterns = {re.sub(r"[A-Z]{2,}(?=\.)", "*", name) for name in named if name not in OF_OTHERS}
    missing = [
        name for name in patterns if not any(any(f.glob(name)) for f in (ROOT, ROOT / "ckptcli"))
    ]
    assert not missing


def test_the_page_of_the_architecture_is_short_and_leads_to_every_page_of_a_part() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    assert len(text.splitlines()) <= 200
    assert [page for page in OF_PARTS if f"({page.removeprefix('docs/')})" not in text] == []


def test_the_table_of_parts_has_every_part_in_the_order_of_imports() -> None:
    """A part is what the contract of directions has: a package or a module."""
    (layers,) = re.findall(
        r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    ordered = [name for name in re.findall(r"ckptcli\.(\w+)", layers) if name != "__main__"]
    table = (ROOT / "docs/architecture.md").read_text().partition("| part")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert [name for row in rows for name in re.findall(r"`(\w+)/?`", row)] == ordered


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/commands/")])
def test_prose_is_wrapped(page: str) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    assert [line for line in prose if len(line) > 125] == []


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
