"""The size of files and functions."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ckptcli"


def functions() -> dict[str, int]:
    return {
        f"{path.name}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_no_function_is_over_sixty_lines() -> None:
    assert {name: lines for name, lines in functions().items() if lines > 60} == {}


def test_most_functions_are_small() -> None:
    assert statistics.median(functions().values()) < 10


def test_no_file_is_over_four_hundred_lines() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_every_module_says_what_it_is() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
