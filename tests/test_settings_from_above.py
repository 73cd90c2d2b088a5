"""A burn.toml above the working directory that changes a setting is told, by name and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli.cli.main import run_command

TOLD = "found above this directory, sets"


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory below one that has a burn.toml; the test writes that."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return tmp_path / "burn.toml"


def errors_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command(words) == 0
    return capsys.readouterr().err


def test_what_it_changed_is_named(below: Path, capsys: pytest.CaptureFixture[str]) -> None:
    below.write_text('[ckpt]\nlayers = 1\nstrategy = ["none", "remat"]\nreps = 1\nn = 8\n')
    told = f"note: {below}, {TOLD} strategy = none, remat, layers = 1, n = 8, reps = 1\n"
    assert told in errors_of(capsys, "run")
    assert TOLD not in errors_of(capsys, "run", "-q")
    named = errors_of(capsys, "saved", "-l", "2", "-s", "none")
    assert f"{TOLD} n = 8\n" in named
    assert TOLD not in errors_of(capsys, "saved", "--config", str(below))


def test_a_default_that_it_repeats_is_no_change(
    below: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    below.write_text("[ckpt]\nlayers = 2\n\n[other]\nkey = 1\n")
    assert TOLD not in errors_of(capsys, "log")


def test_a_logger_that_it_turns_on_is_told(below: Path, capsys: pytest.CaptureFixture[str]) -> None:
    below.write_text('[autodiff.logger]\nlevel = "basic"\nstderr = true\n')
    assert f"note: {below}, {TOLD} the logger\n" in errors_of(capsys, "log", "-l", "1", "-n", "4")


def test_a_file_of_this_directory_is_the_users_own(
    below: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("burn.toml").write_text("[ckpt]\nlayers = 1\n")
    assert TOLD not in errors_of(capsys, "log")
