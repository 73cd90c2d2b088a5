"""`ckpt sweep --store`: a DuckDB file instead of a folder."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command

WITHOUT = importlib.util.find_spec("duckdb") is None
needs_duckdb = pytest.mark.skipif(WITHOUT, reason="needs duckdb: pip install '.[sweep]'")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def swept(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert run_command(["sweep", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def queried(query: str) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect("s.duckdb", read_only=True) as connection:
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return found


def test_without_duckdb_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run_command(["sweep", "-n", "8", "--store", "s.duckdb"]) == 2
    told = capsys.readouterr().err
    assert "--store needs duckdb, which is not installed" in told
    assert "pip install 'ckptcli[sweep]'" in told
    assert run_command(["sweep", "-n", "8", "--store", "s.duckdb", "--out", "s"]) == 2
    assert "both say where points are kept" in capsys.readouterr().err


@needs_duckdb
def test_a_file_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.duckdb").write_text("no database")
    assert run_command(["sweep", "-n", "8", "--store", "s.duckdb"]) == 2
    assert "cannot be the store of a sweep" in capsys.readouterr().err
    assert Path("s.duckdb").read_text() == "no database"


@needs_duckdb
@pytest.mark.slow
def test_the_tables_have_what_the_records_have(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-n", "8,16", "-l", "2", "--reps", "3", "--store", "s.duckdb")
    found = swept(capsys, *words)
    rows = queried("SELECT key, strategy, peak_bytes, total_s FROM rows ORDER BY key, strategy")
    assert rows == sorted(
        (p["key"], row["strategy"], row["peak_bytes"], row["total_s"])
        for p in found["points"]
        for row in p["rows"]
    )
    assert queried("SELECT count(*), max(round), min(total_s) > 0 FROM samples") == [(12, 2, True)]
    points = queried("SELECT key, point, status FROM points ORDER BY key")
    assert points == sorted(
        (p["key"], json.dumps(p["point"]), p["status"]) for p in found["points"]
    )
    before = queried("SELECT record FROM points ORDER BY key")
    assert swept(capsys, *words) == found
    assert queried("SELECT record FROM points ORDER BY key") == before


@needs_duckdb
@pytest.mark.slow
def test_a_failed_point_is_tried_again_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-n", "64", "-l", "2", "--memory-only", "--device-memory", "9B", "--store", "s.duckdb")
    found = swept(capsys, *words, code=1)
    assert queried("SELECT status, reason FROM points") == [
        ("failed", found["points"][0]["reason"])
    ]
    assert swept(capsys, *words, "--retry", code=1) == found
    assert queried("SELECT count(*) FROM points") == [(1,)]
