"""Files that earlier versions wrote: read as rows, with every figure that they have."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from ckptcli import units
from ckptcli.cli.main import run_command
from ckptcli.errors import RecordFileError
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.report.readings import answer

DATA = Path(__file__).parent / "data"
WITH_PEERS = DATA / "run_with_peers.json"
OF_A_MODULE = DATA / "run_of_a_module_1.json"


def data_of(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def record_of(path: Path) -> RunRecord:
    return read_record(path.read_text(encoding="utf-8"), path.name)


def test_peers_become_rows_behind_ckpts_own() -> None:
    data, record = data_of(WITH_PEERS), record_of(WITH_PEERS)
    assert [row.key for row in record.rows] == [
        *(("ckpt", entry["strategy"]) for entry in data["strategies"]),
        *((entry["engine"], entry["strategy"]) for entry in data["peers"]),
    ]
    for row, entry in zip(record.rows[2:], data["peers"]):
        assert row.memory is not None
        memory = entry["memory"]
        assert (row.saved_bytes, row.peak_bytes) == (memory["saved_bytes"], memory["peak_bytes"])
        assert row.seconds("total") == entry["total_s"]["samples"]
        assert row.seconds("forward") == entry["forward_s"]["samples"]
        assert row.ratios is not None
        assert row.ratios["total"].median == entry["ratio"]["median"]
        assert row.own_ratio is not None
        assert row.own_ratio.verdict == entry["own_ratio"]["verdict"]


def test_a_module_becomes_a_run_with_its_rows() -> None:
    data, record = data_of(OF_A_MODULE), record_of(OF_A_MODULE)
    assert record.title == data["title"]
    assert record.children == tuple(data["children"])
    assert [row.key for row in record.rows] == [("torch", r["strategy"]) for r in data["rows"]]
    none, remat, balanced = record.rows
    assert record.reference_of(none) is none
    before_bytes = data["parameters_bytes"] + data["input_bytes"]
    for row, entry in zip((none, remat), data["rows"]):
        assert row.memory is not None
        assert row.memory.params_input_bytes == before_bytes
        assert row.peak_bytes == entry["memory"]["peak_bytes"]
        assert row.median_s("backward") == entry["backward_s"]["median"]
    assert remat.regions == tuple(map(tuple, data["rows"][1]["regions"]))
    assert remat.judgement is not None
    assert remat.judgement.word == data["rows"][1]["judgement"]["word"]
    assert balanced.reason == data["rows"][2]["reason"]
    beside = [row.agreement.beside for row in (none, remat) if row.agreement is not None]
    assert beside == ["none", "none"], "no engine of ckpt's has run a module"


def test_a_peer_is_slower_than_none_of_its_own_engine() -> None:
    """Memory and time of one sentence are held against the same row."""
    record = record_of(WITH_PEERS)
    row = next(row for row in record.rows if row.key == ("torch", "remat"))
    none = next(row for row in record.rows if row.key == ("torch", "none"))
    pairs = zip(row.seconds("total"), none.seconds("total"))
    expected = math.exp(statistics.median(math.log(own / base) for own, base in pairs))
    assert row.engine_ratios is not None
    assert row.engine_ratios["total"].median == pytest.approx(expected, rel=1e-12)
    assert f"takes {units.ratio(expected)} the time of `torch none` (" in answer(row, record)
    assert none.engine_ratios is None


@pytest.mark.parametrize("path", [WITH_PEERS, OF_A_MODULE])
def test_what_was_read_is_written_as_a_run_of_today(path: Path) -> None:
    record = record_of(path)
    text = record_json(record)
    assert json.loads(text)["schema"] == "ckpt.run/1"
    assert read_record(text, "text") == record


@pytest.mark.parametrize("path", [WITH_PEERS, OF_A_MODULE])
@pytest.mark.parametrize("command", ["show", "compare"])
def test_the_commands_take_them(
    command: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([command, *[str(path)] * (2 if command == "compare" else 1)]) == 0
    assert "remat" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["rows", "title", "parameters_bytes", "machine", "children"])
def test_a_module_file_without_a_key_is_refused(key: str) -> None:
    data = data_of(OF_A_MODULE)
    del data[key]
    with pytest.raises(RecordFileError, match=r"is not a whole ckpt.module/1 record: .*" + key):
        read_record(json.dumps(data), "`old.json`")


@pytest.mark.parametrize("value", [None, 3, "x", [], [3], {}])
def test_rows_that_are_none_are_refused(value: object) -> None:
    for path, key in ((OF_A_MODULE, "rows"), (WITH_PEERS, "peers"), (WITH_PEERS, "strategies")):
        data = {**data_of(path), "peers": [], key: value}
        if value in ([], {}) and key == "peers":
            read_record(json.dumps(data), "`old.json`")
            continue
        with pytest.raises(RecordFileError, match="is not a whole"):
            read_record(json.dumps(data), "`old.json`")
