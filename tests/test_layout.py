"""The size of files and functions, and that every module can be loaded."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ckptcli"

LOADING = """
import importlib, sys
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ckptcli"):
            raise
"""
"""Loads modules; one that needs a library which is not installed is left out."""


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


def test_every_module_can_be_loaded() -> None:
    """Most are loaded where they are first used, which a few tests may not reach."""
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.stem != "__main__"
    ]
    command = [sys.executable, "-c", LOADING]
    done = subprocess.run(command, input="\n".join(names), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
