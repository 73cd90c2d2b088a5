"""What the pages show is what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.cli.main import COMMANDS, run_command
from ckptcli.report.drawing.style import WHYS
from ckptcli.workloads.graph_case import signature_of
from tests.test_graph_files import CALLS, call, on_shapes

ROOT = Path(__file__).parent.parent


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.S)


def test_the_readmes_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("README.md", "python")
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[")


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


def test_the_readmes_first_command_installs_the_tree_itself() -> None:
    """A copy in `.venv` would shadow the tree that `scripts/test` works on."""
    (command,) = [line for line in (ROOT / "README.md").read_text().splitlines() if "pip" in line]
    assert "pip install -q -e . " in command


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


KINDS = {
    "float": "number",
    "int": "integer",
    "mask": "truth values",
    "Sequence[int]": "integers",
    "Sequence[Sequence[int]]": "lists of 2 or 3 integers",
}


def op_rows() -> dict[str, list[str]]:
    """Op -> the other cells of its row in the page of ops."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (ROOT / "docs/ops.md").read_text(), flags=re.M)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def test_the_page_of_ops_has_every_op_with_its_arguments() -> None:
    for name in OPERATIONS:
        signature = signature_of(name)
        arguments = ", ".join(f"`{key}` {KINDS[kind]}" for key, kind in signature.arguments.items())
        operands = ", ".join(signature.tensors) + (", any number" if signature.takes_list else "")
        assert op_rows()[name][:2] == [operands, arguments], name
    assert list(op_rows()) == sorted(OPERATIONS)


SPECIAL: list[tuple[str, list[list[int]], dict[str, object], int]] = [
    ("swap_dims", [[2, 3]], {"dim1": 1, "dim2": -1}, 0),
    ("permute", [[2, 3]], {"axes": [0, 1]}, 0),
    ("powf_scalar", [[2, 3]], {"c": 1}, 0),
    ("powf_scalar", [[2, 3]], {"c": -2}, 2),
    ("matmul", [[5, 1, 2], [1, 2, 3]], {}, 3),
]


@pytest.mark.parametrize(
    ("name", "shapes", "arguments", "count"),
    [*((name, *CALLS[name], None) for name in CALLS), *SPECIAL],
)
def test_the_page_of_ops_says_how_many_nodes_an_op_makes(
    name: str,
    shapes: list[list[int]],
    arguments: dict[str, object],
    count: int | None,
    tmp_path: Path,
) -> None:
    tensors = call(name, shapes, arguments, tmp_path / "g.json").load(on_shapes()).tensors()
    made = tensors[-1].node.id - tensors[-2].node.id
    assert str(made) in re.findall(r"\d+", op_rows()[name][2])
    assert count is None or made == count
