"""Files that are no record of this version: refused by name, with exit code 2 and no traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ckptcli.cli.main import run_command
from ckptcli.cli.records import read_record_file
from ckptcli.errors import RecordFileError
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json
from tests.records import run_record

Path_ = tuple[str | int, ...]

SHIPPED = files("ckptcli.measure") / "schema" / "run-1.json"
BEFORE_DEVICES = Path(__file__).parent / "data" / "run_before_devices.json"
VALIDATOR = Draft202012Validator(json.loads(SHIPPED.read_text(encoding="utf-8")))


def whole() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record_json(run_record()))
    return found


def refused(text: str, match: str) -> RecordFileError:
    """The error of a text that must be refused: its message, exit code and hint are asserted."""
    with pytest.raises(RecordFileError, match=match) as caught:
        read_record(text, "`old.json`")
    assert caught.value.exit_code == 2
    assert "`old.json`" in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("schema", ["ckpt.run/2", "ckpt.run/10", "ckpt.run/1.1"])
def test_a_newer_schema_is_refused_by_name(schema: str) -> None:
    error = refused(
        json.dumps({**whole(), "schema": schema}), f"has schema `{schema}`, this version reads"
    )
    assert "`ckpt.run/1`" in error.message
    assert "version of ckpt" in (error.hint or "")


@pytest.mark.parametrize("schema", ["ckpt.compare/1", "pyperf", 1, None, ["ckpt.run/1"]])
def test_a_foreign_schema_is_refused_by_name(schema: Any) -> None:
    error = refused(json.dumps({**whole(), "schema": schema}), "has schema")
    assert error.message == f"`old.json` has schema `{schema}`, not `ckpt.run/1`"


@pytest.mark.parametrize("text", ["[]", "[1, 2]", "1", "null", '"ckpt.run/1"', "{}", "true"])
def test_what_is_no_record_is_refused(text: str) -> None:
    error = refused(text, "has schema")
    assert error.message == "`old.json` has schema `None`, not `ckpt.run/1`"


@pytest.mark.parametrize("text", ["", " ", "{", "not json", "[1, 2"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(RecordFileError, match=r"is not JSON: .* at line 1, column \d+") as caught:
        read_record(text, "`old.json`")
    assert caught.value.exit_code == 2


def test_a_truncated_file_is_refused() -> None:
    text = record_json(run_record())
    for length in range(0, len(text) - 2, 397):
        with pytest.raises(RecordFileError, match=r"is not JSON"):
            read_record(text[:length], "`old.json`")


DERIVED = {
    *("judgement", "recomputed_nodes", "peak_forward_bytes", "peak_backward_bytes", "rounds"),
    *("recomputed_flops_share", "recomputed_moved_bytes_share", "ratios"),
    *("forward_s", "backward_s", "total_s", "engine_ratios", "own_ratio", "agrees"),
    *("ledger_peak_bytes", "workspace_bytes", "peak_bytes"),
}
"""Written for readers, computed anew when a file is read."""


OPTIONAL = {
    *("library", "failures", "peers", "children", "origin", "accelerator"),
    *("engine", "threads", "reason", "failed", "regions", "agreement", "compile_s"),
    *("compiled_temp_bytes", "process_peak_bytes", "warmup", "counted", "whole_s"),
    *("allocator_forward", "allocator_backward", "offloaded_bytes", "grad_within_spread"),
    *("gradient", "exact", "finite_difference", "point", "programs"),
    *("compiled", "compiled_peak_bytes", "counterpart", "plain_agreement"),
    *("dtype", "source", "name", "ops_per_point"),
    *("check", "repeats", "collected", "process"),
    *("module", "held_by", "holders", "allocator_after_forward"),
    *("allocator_after_backward", "optimizer_bytes", "ledger_peak_step_bytes"),
    *("traced_peak_step_bytes", "phases", "step_s"),
}
"""What has a default, and so is missing from a file that is older."""


def is_optional(path: Path_) -> bool:
    if path[-1] == "phase":
        return path[-2] == "peak_live"
    return path[-1] in OPTIONAL and path[0] != "workload"


def keys(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The way to every key, of lists the first entry's alone."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from keys(value, (*path, key))
    elif isinstance(data, list) and data:
        yield from keys(data[0], (*path, 0))


def parent(data: Any, path: Path_) -> Any:
    for key in path[:-1]:
        data = data[key]
    return data


@pytest.mark.slow
def test_a_file_without_a_key_is_refused() -> None:
    data = whole()
    checked = 0
    for path in keys(data):
        changed = copy.deepcopy(data)
        del parent(changed, path)[path[-1]]
        if VALIDATOR.is_valid(changed):
            continue  # A name of the program or of a setting.
        checked += 1
        text = json.dumps(changed)
        if is_optional(path):
            read_record(text, "`old.json`")
        elif path[-1] in ("forward_s", "backward_s") and "passes" in path:
            with pytest.raises(RecordFileError):  # of a sample, not of the row
                read_record(text, "`old.json`")
        elif DERIVED.isdisjoint((*path[2:3], path[-1])):
            with pytest.raises(RecordFileError):
                read_record(text, "`old.json`")
        else:
            assert read_record(text, "`old.json`") == run_record()
    assert checked > 90


def test_a_file_from_before_keys_were_added_is_read() -> None:
    """Recorded before devices, offloading and peers, when version 1 had fewer keys."""
    record = read_record(BEFORE_DEVICES.read_text(encoding="utf-8"), "`old.json`")
    assert [s.strategy for s in record.rows] == ["none", "balanced"]
    assert (record.library, record.failures, record.origin) == ("NumPy 2.4.6", (), None)
    memory = record.rows[0].memory
    assert (memory.allocator_forward, memory.offloaded_bytes) == (None, 0)
    assert not record.rows[1].outcome.grad_within_spread
    assert len(record.rows[1].trace.nodes) == 10
    assert [len(s.samples) for s in record.rows] == [2, 2]
    assert read_record(record_json(record), "`new.json`") == record


@pytest.mark.parametrize("arguments", [("show",), ("compare", str(BEFORE_DEVICES))])
def test_the_commands_read_such_a_file(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([*arguments, str(BEFORE_DEVICES)]) == 0
    assert "balanced" in capsys.readouterr().out


def test_a_missing_key_is_named() -> None:
    data = whole()
    del data["strategies"][0]["saved_bytes"]
    assert (
        "strategies[0].saved_bytes is missing"
        in refused(json.dumps(data), "is not a whole ckpt.run/1").message
    )


def record_or_error(path: Path) -> RunRecord | RecordFileError:
    try:
        return read_record_file(str(path))
    except RecordFileError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("value", ["text", [], {}, None, True, -1, 0, 1.5, "nan"])
def test_a_wrong_value_ends_in_an_error_or_a_record(value: Any, tmp_path: Path) -> None:
    """Never in a traceback: the command reads files that people have touched."""
    data = whole()
    path = tmp_path / "old.json"
    for way in keys(data):
        changed = copy.deepcopy(data)
        parent(changed, way)[way[-1]] = value
        path.write_text(json.dumps(changed))
        outcome = record_or_error(path)
        if isinstance(outcome, RecordFileError):
            assert f"`{path}`" in outcome.message
            assert outcome.hint
        else:
            assert json.loads(record_json(outcome)).keys() == data.keys()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"schema": "ckpt.run/2"}', '{"schema": "ckpt.run/1"}']
)
def test_the_command_says_so_and_ends_with_2(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    assert run_command(["show", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(path) in captured.err
    assert "Traceback" not in captured.err
