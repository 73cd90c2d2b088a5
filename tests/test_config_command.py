"""Where a setting comes from: flag, environment, burn.toml, default."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.config import read_defaults

SMALL = '[ckpt]\nlayers = 2\nn = 8\nreps = 2\nstrategy = ["none", "balanced"]\n'


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Result]


@pytest.fixture
def ckpt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("CKPT_"):
            monkeypatch.delenv(name)

    def run(*arguments: str) -> Result:
        code = run_command(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def burn_toml(tmp_path: Path, text: str, name: str = "burn.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def setting(result: Result, key: str) -> tuple[object, str, str | None]:
    entry = result.json["settings"][key]
    return entry["value"], entry["origin"], entry["source"]


# The table, purely.


def test_keys_are_written_with_either_dash() -> None:
    read = read_defaults({"ckpt": {"max_time": 5, "no-reference": True}}, KINDS)
    assert read.values == {"max-time": 5, "no-reference": True}
    assert (read.unknown, read.wrong) == ((), ())


@pytest.mark.parametrize("value", [0.44, 1, "0.3,0.44"])
def test_one_number_of_several_may_stand_without_quotes(value: object) -> None:
    assert read_defaults({"ckpt": {"beta": value}}, KINDS).values == {"beta": value}


KINDS: dict[str, Any] = {
    "layers": "integer",
    "max-time": "number",
    "no-reference": "boolean",
    "dtype": "string",
    "beta": "numbers",
    "strategy": "strings",
}


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("layers", "8", '`ckpt.layers` is "8", not an integer'),
        ("layers", 8.0, "`ckpt.layers` is 8.0, not an integer"),
        ("layers", True, "`ckpt.layers` is true, not an integer"),
        ("max_time", "5", '`ckpt.max-time` is "5", not a number'),
        ("no-reference", 1, "`ckpt.no-reference` is 1, not a boolean"),
        ("beta", True, "`ckpt.beta` is true, not a number or a list in a text"),
        ("beta", [0.3, 0.44], "`ckpt.beta` is an array, not a number or a list in a text"),
        ("dtype", ["float32"], "`ckpt.dtype` is an array, not a string"),
        ("strategy", ["none", 3], "`ckpt.strategy` is an array, not a string or a list of strings"),
        ("strategy", {"a": 1}, "`ckpt.strategy` is a table, not a string or a list of strings"),
    ],
)
def test_a_wrong_type_costs_only_itself(key: str, value: object, complaint: str) -> None:
    read = read_defaults({"ckpt": {key: value, "threads": 1}}, {**KINDS, "threads": "integer"})
    assert [wrong.reason for wrong in read.wrong] == [complaint]
    assert read.values == {"threads": 1}


def test_a_key_in_both_spellings_is_wrong() -> None:
    read = read_defaults({"ckpt": {"max-time": 5, "max_time": 6}}, KINDS)
    assert [wrong.reason for wrong in read.wrong] == ["`ckpt.max-time` is given twice"]


def test_a_table_that_is_none() -> None:
    (wrong,) = read_defaults({"ckpt": 3}, KINDS).wrong
    assert wrong.reason == "`ckpt` is 3, not a table"


# Origins.


def test_everything_is_default_without_anything(ckpt: Command) -> None:
    result = ckpt("config", "--json")
    assert (result.code, result.err, result.json["file"]) == (0, "", None)
    assert {entry["origin"] for entry in result.json["settings"].values()} == {"default"}
    assert {entry["origin"] for entry in result.json["logger"].values()} == {"default"}
    assert setting(result, "layers") == (8, "default", None)
    assert setting(result, "batch") == (None, "default", None)
    assert not {"help", "config", "json"} & set(result.json["settings"])


def test_flag_over_environment_over_file_over_default(
    ckpt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = burn_toml(tmp_path, SMALL)
    result = ckpt("config", "--json")
    assert setting(result, "layers") == (2, "file", None)
    assert setting(result, "strategy") == (["none", "balanced"], "file", None)
    assert result.json["file"] == str(path)
    monkeypatch.setenv("CKPT_LAYERS", "4")
    assert setting(ckpt("config", "--json"), "layers") == (4, "environment", "CKPT_LAYERS")
    result = ckpt("config", "--json", "-l", "3")
    assert setting(result, "layers") == (3, "flag", "--layers")
    assert setting(result, "n") == (8, "file", None)
    assert setting(result, "seed") == (0, "default", None)


def test_the_text_is_a_burn_toml_that_gives_the_same_settings(
    ckpt: Command, tmp_path: Path
) -> None:
    text = 'max_time = 2\nworkload = "graph:a \\"b\\"#1"\nno-reference = true\n'
    burn_toml(tmp_path, f'{SMALL}{text}[autodiff.logger]\nlevel = "full"\nfile = "a.log"\n')
    shown = ckpt("config", "--threshold", "3.5")
    assert "threshold = 3.5 " in shown.out
    assert "# flag --threshold" in shown.out
    assert "# batch is not set " in shown.out
    before = ckpt("config", "--json", "--threshold", "3.5").json
    burn_toml(tmp_path, shown.out)
    after = ckpt("config", "--json").json
    for section in ("settings", "logger"):
        assert {key: entry["value"] for key, entry in after[section].items()} == {
            key: entry["value"] for key, entry in before[section].items()
        }


def test_origins_of_the_logger(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, '[autodiff.logger]\nlevel = "basic"\n')
    logger = ckpt("config", "--json").json["logger"]
    assert logger["level"] == {"value": "basic", "origin": "file", "source": None}
    assert logger["append"] == {"value": True, "origin": "default", "source": None}


def test_a_named_file_is_read_and_no_other(
    ckpt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    burn_toml(tmp_path, SMALL)
    burn_toml(tmp_path, "[ckpt]\nseed = 7\n", "mine.toml")
    result = ckpt("config", "--config", "mine.toml", "--json")
    assert (setting(result, "seed")[0], setting(result, "layers")[0]) == (7, 8)
    monkeypatch.setenv("CKPT_CONFIG", "mine.toml")
    assert setting(ckpt("config", "--json"), "seed") == (7, "file", None)


# What the commands make of it.


def test_run_takes_its_defaults_from_the_file(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, SMALL + "[fusion]\nspeed = 3\n")
    result = ckpt("run", "--json", "--warmup", "0")
    assert result.code == 0
    assert f"note: {tmp_path / 'burn.toml'} sets strategy, layers, n, reps\n" in result.err
    record = result.json
    assert (record["workload"]["n"], record["workload"]["layers"], record["rounds"]) == (8, 2, 2)
    assert record["config"]["reps"] == 2
    assert ckpt("run", "--json", "-s", "none").json["strategies"][0]["strategy"] == "none"
    assert len(ckpt("run", "--json", "-s", "none").json["strategies"]) == 1


def test_log_takes_what_concerns_it(ckpt: Command, tmp_path: Path) -> None:
    plain = ckpt("log", "-l", "1", "-s", "none").out
    burn_toml(tmp_path, '[ckpt]\nlayers = 1\nstrategy = "none"\nreps = 5\nlevel = "basic"\n')
    result = ckpt("log")
    assert result.err == f"note: {tmp_path / 'burn.toml'} sets strategy, layers, level\n"
    assert len(result.out.splitlines()) < len(plain.splitlines())
    assert ckpt("log", "--level", "full").out == plain


@pytest.mark.slow
def test_processes_of_a_run_get_settings_from_it_alone(
    ckpt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    burn_toml(tmp_path, f"{SMALL}processes = 2\n")
    monkeypatch.setenv("CKPT_SEED", "5")
    record = ckpt("run", "--json").json
    assert (record["processes"], record["seed"], record["rounds"]) == (2, 5, 2)


def test_the_environment_of_flags_and_lists(ckpt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPT_NO_REFERENCE", "1")
    monkeypatch.setenv("CKPT_STRATEGY", "balanced none")
    result = ckpt("config", "--json")
    assert setting(result, "no-reference") == (True, "environment", "CKPT_NO_REFERENCE")
    assert setting(result, "strategy")[0] == ["balanced", "none"]


@pytest.mark.parametrize(
    ("variable", "text", "values"),
    [
        ("FAIL_ON", "peak_bytes > -90%", ["peak_bytes > -90%"]),
        ("FAIL_ON", "peak_bytes > -90%; time > 5%", ["peak_bytes > -90%", "time > 5%"]),
        ("FAIL_ON", "peak_bytes > 1\n time > 5% \n;", ["peak_bytes > 1", "time > 5%"]),
        ("EXPORT", "my run.json;b.md", ["my run.json", "b.md"]),
        ("STRATEGY", " none\n balanced ", ["none", "balanced"]),
        ("FAIL_ON", " ; ", None),
    ],
)
def test_a_variable_of_several_values_is_taken_apart(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, values: object
) -> None:
    monkeypatch.setenv(f"CKPT_{variable}", text)
    assert setting(ckpt("config", "--json"), variable.lower().replace("_", "-"))[0] == values


@pytest.mark.slow
def test_processes_keep_the_limit_of_time(ckpt: Command) -> None:
    """Each stops at its share, after the nine rounds that any limit leaves."""
    limit = ("--processes", "2", "--max-time", "0.001", "-l", "1", "-n", "8", "--threads", "1")
    record = ckpt("run", *limit, "--json").json
    assert (record["processes"], record["rounds"]) == (2, 18)
    assert record["config"]["max_time_s"] == 0.001


def test_a_record_has_no_settings_of_other_workloads(ckpt: Command) -> None:
    config = ckpt("run", "-l", "1", "-n", "8", "--reps", "1", "--json").json["config"]
    assert (config["layers"], config["n"], config["workload_text"]) == (1, 8, "silu")
    assert not {"op", "chi", "merge", "rounds", "steps"} & set(config)


# What is wrong.


def test_unknown_keys_warn_with_the_nearest_name(ckpt: Command, tmp_path: Path) -> None:
    path = burn_toml(tmp_path, SMALL + "layer = 3\nxyzzy = 1\nhelp = true\n")
    result = ckpt("run", "--json")
    assert result.code == 0
    assert f"warning: {path}: `ckpt.layer` is no setting; did you mean `layers`?" in result.err
    assert "`ckpt.xyzzy` is no setting; known: " in result.err
    assert "`ckpt.help` is no setting" in result.err
    assert "no setting" not in ckpt("run", "--json", "-q").err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('layers = "x"', '`ckpt.layers` is "x", which `--layers` does not take'),
        ("layers = 1.5", "`ckpt.layers` is 1.5, not an integer or a list in a text"),
        ("layers = 0", "`ckpt.layers` is 0, which `--layers` does not take"),
        ('dtype = "int8"', '`ckpt.dtype` is "int8", which `--dtype` does not take'),
        ("seed = 1.5", "`ckpt.seed` is 1.5, not an integer"),
    ],
)
def test_a_wrong_value_ends_a_named_file_and_warns_in_a_found_one(
    ckpt: Command, tmp_path: Path, line: str, message: str
) -> None:
    burn_toml(tmp_path, f"[ckpt]\n{line}\nbatch = 4\n")
    found = ckpt("config", "--json")
    assert found.code == 0
    assert f"burn.toml: {message}" in found.err
    key = line.partition(" ")[0]
    assert setting(found, key)[1] == "default"
    assert setting(found, "batch") == (4, "file", None)
    for command in ("config", "run", "log"):
        named = ckpt(command, "--config", "burn.toml")
        assert (named.code, named.out) == (2, "")
        assert f"Error: config file `burn.toml`: {message}" in named.err


def test_a_section_that_is_no_table(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, "ckpt = 3\n")
    assert "`ckpt` is 3, not a table; write `[ckpt]`" in ckpt("config").err
    assert ckpt("config", "--config", "burn.toml").code == 2


def test_a_malformed_file_is_reported_once_and_passed_over(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, "[ckpt]\nlayers = 2\n[autodiff.logger]\nlevel = 3\n")
    for command in (["config", "--json"], ["log", "-s", "none"]):
        assert ckpt(*command).err.count("which doesn't have the right format") == 1
    assert setting(ckpt("config", "--json"), "layers") == (8, "default", None)


def test_a_wrong_variable_is_named(ckpt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPT_LAYERS", "many")
    result = ckpt("run")
    assert result.code == 2
    told = "environment variable CKPT_LAYERS: `many` is not a whole number of at least 1"
    assert told in result.err
    assert ckpt("config", "-l", "2").code == 0


def test_an_unknown_variable_is_told(ckpt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPT_LAYER", "2")
    monkeypatch.setenv("CKPT_REPS", "2")
    assert ckpt("config").err == (
        "warning: environment variable `CKPT_LAYER` is no setting; did you mean `CKPT_LAYERS`?\n"
    )


@pytest.mark.parametrize("command", ["run", "log", "check", "saved", "ops"])
def test_an_unknown_variable_is_told_once_by_every_command(
    command: str, ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CKPT_LAYER", "2")
    monkeypatch.setenv("CKPT_REPS", "1")
    monkeypatch.setenv("CKPT_N", "8")
    monkeypatch.setenv("_CKPT_COMPLETE", "")
    told = "`CKPT_LAYER` is no setting; did you mean `CKPT_LAYERS`?"
    result = ckpt(command)
    assert (result.code, result.err.count(told), result.err.count("no setting")) == (0, 1, 1)
    assert "no setting" not in ckpt(command, "-q").err


@pytest.mark.parametrize("command", ["log", "check", "saved"])
def test_variables_and_keys_count_for_every_command_that_has_the_option(
    command: str, ckpt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_flag = ckpt(command, "-l", "1", "-n", "8").out
    assert by_flag != ckpt(command).out
    monkeypatch.setenv("CKPT_LAYERS", "1")
    burn_toml(tmp_path, "[ckpt]\nn = 8\nlayers = 5\n")
    assert ckpt(command).out == by_flag


def test_help_reads_no_file(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, "[ckpt]\nlayer = 2\n")
    assert ckpt("run", "--help").err == ""
    assert ckpt("config", "--config", "absent.toml", "--help").code == 0
    assert ckpt("config", "--config", "absent.toml").code == 2


@pytest.mark.parametrize("key", ["layers", "seed", "threshold", "beta"])
def test_an_integer_that_python_does_not_write_out_is_wrong(
    ckpt: Command, tmp_path: Path, key: str
) -> None:
    burn_toml(tmp_path, f"[ckpt]\n{key} = 0x{'f' * 5000}\n")
    result = ckpt("config")
    assert result.code == 0
    assert f"`ckpt.{key}` is an integer of 20000 bits" in result.err
    assert ckpt("config", "--config", "burn.toml").code == 2


def test_an_integer_that_no_number_holds_is_wrong(ckpt: Command, tmp_path: Path) -> None:
    burn_toml(tmp_path, f"[ckpt]\nthreshold = 1{'0' * 400}\nmax-time = -1{'0' * 400}\n")
    result = ckpt("config")
    assert result.code == 0
    assert "which is larger than `--threshold` can be" in result.err
    assert "threshold = 2.0" in result.out
    assert ckpt("config", "--config", "burn.toml").code == 2
