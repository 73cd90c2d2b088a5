"""The pages of the commands: every command has one, and every example on it works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ckptcli.cli.main import COMMANDS
from ckptcli.cli.settings import checked_defaults
from ckptcli.config import LoggerSettings, named_config
from ckptcli.options.commands import COMMANDS as WITH_OPTIONS, options_class, options_classes
from ckptcli.options.listing import options_of, settings_of
from tests.backend_kit import NAMED_ENGINE, skipped_without_its_engines

PAGES = Path(__file__).parents[1] / "docs" / "commands"
LINK = re.compile(r"\]\(([^)#:]+)\)")


def text_of(command: str) -> str:
    return (PAGES / f"{command}.md").read_text(encoding="utf-8")


def examples(command: str) -> list[str]:
    """The commands in the page's console blocks, in order."""
    blocks = re.findall(r"```console\n(.*?)```", text_of(command), flags=re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_every_command_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_of_a_page_works(command: str, tmp_path: Path) -> None:
    """In order, in one directory; those of other libraries apart."""
    shell = [line for line in examples(command) if not NAMED_ENGINE.search(line)]
    assert any(line.startswith(f"ckpt {command}") for line in shell)
    check_examples(shell, tmp_path)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    skipped_without_its_engines(
        line for command in COMMANDS for line in examples(command) if NAMED_ENGINE.search(line)
    ),
)
def test_every_example_in_another_library_works(line: str, tmp_path: Path) -> None:
    check_examples([line], tmp_path)


def check_examples(shell: Sequence[str], directory: Path) -> None:
    """Run the lines in `directory`, with `ckpt` as this tree's."""
    script = directory / "bin" / "ckpt"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ckptcli "$@"\n')
    script.chmod(0o755)
    for line in shell:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            capture_output=True,
            encoding="utf-8",
            cwd=directory,
            env={**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"},
            timeout=300,
        )
        assert (line, done.returncode, "Traceback" in done.stderr) == (line, 0, False)
        assert done.stdout or " > " in line, line


@pytest.mark.parametrize("command", COMMANDS)
def test_links_lead_somewhere(command: str) -> None:
    for target in LINK.findall(text_of(command)):
        assert (PAGES / target).exists(), target


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", WITH_OPTIONS)
def test_every_option_that_a_page_names_exists(command: str) -> None:
    known = {option.flag for cls in options_classes() for option in options_of(cls)}
    assert set(re.findall(r"`(--[a-z-]+)", text_of(command))) <= known


@pytest.mark.parametrize("command", WITH_OPTIONS)
def test_a_page_names_every_option_of_its_command(command: str) -> None:
    text = text_of(command)
    for option in options_of(options_class(command)):
        forms = [option.flag, *([f"-{option.short}"] if option.short else [])]
        is_on_run_page = command == "config"  # which takes the options of `ckpt run`
        assert is_on_run_page or any(re.search(rf"`{form}\b", text) for form in forms), forms


@pytest.mark.slow
def test_the_table_on_the_page_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", text_of("config"), flags=re.S)
    (tmp_path / "burn.toml").write_text(block, encoding="utf-8")
    found = named_config(tmp_path / "burn.toml")
    assert found.settings == LoggerSettings()
    defaults = checked_defaults(found, settings_of(options_classes()))
    assert (defaults.unknown, defaults.wrong) == ((), ())
    assert defaults.values["strategy"] == ["none", "balanced"]
