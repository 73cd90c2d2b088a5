"""Options that refuse each other, where one of them comes from the environment or a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.command import OptionsCommand
from ckptcli.cli.main import run_command
from ckptcli.options.commands import COMMANDS, options_class
from ckptcli.options.listing import options_of, values_of
from ckptcli.options.origins import NEAREST_FIRST
from ckptcli.options.refusals import settled

TINY = ("-n", "4", "-l", "1", "-q", "--json")

CASES = [
    ("run", "--memory-only", "reps", 3, True),
    ("run", "--memory-only", "processes", 2, True),
    ("run", "--reps 3", "memory-only", True, True),
    ("sweep", "--memory-only", "reps", 3, True),
    ("fits", "--memory-only", "reps", 3, True),
    ("plan", "--budget 1MB", "device-memory", "2MB", True),
    ("plan", "--graph g.json", "module", "net.py:make", False),
    ("plan", "--graph g.json", "function", "net.py:make", True),
    ("plan", "--run", "fake", True, True),
    ("plan", "--cost time", "fake", True, True),
    ("plan", "--host-memory 1MB", "planner", "cp-sat", True),
    ("run", "--module net.py:make", "function", "net.py:make", True),
    ("run", "--function net.py:make", "module", "net.py:make", False),
    ("run", "--module net.py:make", "engine", "jax", True),
    ("run", "--engine jax", "module", "net.py:make", False),
    ("run", "--function net.py:make", "engine", "torch", True),
    ("fits", "--over depth", "set", "depth=4", True),
    ("show", "--json", "stats", True, True),
    ("show", "--timeline", "json", True, True),
    ("run", "--json", "export", "-", False),
    ("run", "--export -", "json", True, True),
    ("run", "", "format", "csv", True),
    ("sweep", "--on slurm", "scheduler", "tcp://a:1", True),
    ("sweep", "", "slurm", "partition=gpu", False),
]


def parsed(name: str, *words: str) -> tuple[dict[str, Any], frozenset[str]]:
    """The values that a command works with, by long names, and those that are not defaults."""
    seen: list[Any] = []
    command = OptionsCommand(
        name,
        options_class(name),
        callback=lambda options, line: seen.append((options, line)),
    )
    command.main(list(words), standalone_mode=False)
    ((options, line),) = seen
    keys = {option.name: option.key for option in line.options}
    values = {keys[of]: value for of, value in values_of(options).items()}
    return values, frozenset(keys[of] for of, origin in line.origins.items() if origin != "default")


def default_of(name: str, key: str) -> Any:
    return next(of.default for of in options_of(options_class(name)) if of.key == key)


def set_in_environment(key: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    monkeypatch.setenv(f"CKPT_{key.replace('-', '_').upper()}", text)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "line", "key", "value", "in_found"), CASES)
@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_default_gives_way_to_what_was_typed(
    name: str,
    line: str,
    key: str,
    value: Any,
    in_found: bool,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = line.split()
    if place == "environment":
        set_in_environment(key, value, monkeypatch)
    else:
        Path("mine.toml").write_text(f"[ckpt]\n{key} = {json.dumps(value)}\n")
        words += ["--config", "mine.toml"]
        if in_found:
            Path("mine.toml").rename("burn.toml")
            words = words[:-2]
    values, given = parsed(name, *words)
    assert values[key] == default_of(name, key)
    assert key not in given
    assert {word.removeprefix("--") for word in words if word.startswith("--")} <= given


@pytest.mark.parametrize("place", ["environment", "file"])
def test_memory_alone_is_measured_whatever_times_by_default(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if place == "environment":
        set_in_environment("reps", 3, monkeypatch)
        set_in_environment("processes", 2, monkeypatch)
    else:
        Path("burn.toml").write_text("[ckpt]\nreps = 3\nprocesses = 2\n")
    assert run_command(["run", "--memory-only", *TINY]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["reps"], config["processes"]) == (None, 1)
    assert run_command(["sweep", "--memory-only", *TINY]) == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert all(row["peak_bytes"] for row in point["rows"])


def test_memory_alone_in_a_sweep_over_a_grid_that_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("grid.toml").write_text('[ckpt]\nreps = 3\nn = "4,8"\n')
    words = ["sweep", "--memory-only", "--grid", "grid.toml", "-l", "1", "-q", "--json"]
    assert run_command(words) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 2


def test_what_was_typed_together_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--memory-only", "--reps", "3"]) == 2
    assert "--memory-only times nothing" in capsys.readouterr().err


def test_the_environment_comes_before_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("burn.toml").write_text("[ckpt]\nmemory-only = true\n")
    set_in_environment("reps", 3, monkeypatch)
    values, _ = parsed("run")
    assert (values["reps"], values["memory-only"]) == (3, False)


def test_of_two_of_one_file_the_stricter_stays() -> None:
    Path("burn.toml").write_text("[ckpt]\nmemory-only = true\nreps = 3\n")
    values, _ = parsed("run")
    assert (values["reps"], values["memory-only"]) == (None, True)


def test_of_several_values_only_what_is_refused_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPT_SET", "depth=4 width=2")
    values, given = parsed("fits", "--over", "depth")
    assert values["set"] == ("width=2",)
    assert "set" in given


def test_what_lacks_what_it_needs_is_told_where_it_was_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["run", "--format", "csv"]) == 2
    assert "--format csv has no effect" in capsys.readouterr().err
    assert run_command(["sweep", "-n", "4", "--scheduler", "tcp://a:1"]) == 2
    assert "add --on dask" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_gives_way_twice(name: str) -> None:
    """What is settled stays as it is, and every name that is refused is one of an option."""
    options = options_of(options_class(name))
    known = {of.name for cls in map(options_class, COMMANDS) for of in options_of(cls)}
    assert {other for of in options for each in of.refuses for other in each.others} <= known
    values = {of.name: of.default for of in options}
    for origin in NEAREST_FIRST:
        assert settled(options, values, dict.fromkeys(values, origin)) == {}
