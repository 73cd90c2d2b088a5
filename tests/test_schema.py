"""The schema that is shipped, against what the command prints; reading back what was written."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ckptcli.cli.main import run_command
from ckptcli.measure.json_schema import schema_text
from ckptcli.measure.record import SCHEMA, RunRecord
from ckptcli.measure.record_json import read_record, record_json, record_object
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.workloads.silu import SiluWorkload
from tests.records import balanced_record, none_record, run_record

SHIPPED = files("ckptcli.measure") / "schema" / "run-1.json"
SCHEMA_TEXT = SHIPPED.read_text(encoding="utf-8")
PAGE = Path(__file__).parent.parent / "docs" / "schema.md"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA_TEXT))

Path_ = tuple[str | int, ...]

SMALL = ("--layers", "2", "--n", "16", "--reps", "2")
GRAPH = {
    "ops": [
        {"op": "leaf", "req": True, "data": [1, 2, 3, 4]},
        {"op": "leaf", "data": [1, 2, 3, 4]},
        {"op": "mul", "in": [0, 1]},
        {"op": "exp", "in": [2]},
        {"op": "matmul", "in": [3, 0]},
    ]
}
DIVERGED = {
    "ops": [
        {"op": "leaf", "req": True, "data": [1000, 2000]},
        {"op": "exp", "in": [0]},
        {"op": "exp", "in": [1]},
    ]
}
NODE_ID_LISTS = {"parents", "visited", "held_for_constants"}
LONGEST = 2000


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What `ckpt run --json` prints."""
    assert run_command(["run", *arguments, "--json", "-q"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def validate(data: Any) -> None:
    error = best_match(VALIDATOR.iter_errors(data))
    assert error is None, f"{error.json_path}: {error.message[:200]}"


def check(data: Any) -> None:
    """Valid, without array values, and read back as the record that it is."""
    validate(data)
    for path, value in leaves_and_lists(data):
        if isinstance(value, list):
            named = path[-1] if isinstance(path[-1], str) else path[-2]
            assert len(value) <= LONGEST, path
            numbers = [item for item in value if isinstance(item, int | float)]
            if numbers:
                assert named in {"samples", "shape", "exact"} | NODE_ID_LISTS, path
            if any(isinstance(item, float) for item in numbers):
                assert named in {"samples", "exact"}, path
    text = json.dumps(data)
    assert record_object(read_record(text, "text")) == data


def leaves_and_lists(data: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value that is no object, with the way to it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves_and_lists(value, (*path, key))
        return
    yield path, data
    if isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves_and_lists(value, (*path, index))


@pytest.fixture
def program(tmp_path: Path) -> Callable[[Any], str]:
    def write(content: Any) -> str:
        path = tmp_path / "program.json"
        path.write_text(json.dumps(content))
        return f"graph:{path}"

    return write


def test_the_schema_that_is_shipped_is_that_of_the_classes() -> None:
    """`python -m ckptcli.measure.json_schema` writes it anew."""
    assert schema_text() == SCHEMA_TEXT


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(json.loads(SCHEMA_TEXT))
    assert json.loads(SCHEMA_TEXT)["properties"]["schema"]["const"] == SCHEMA


def schemas(schema: Any, place: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property's schema in it, by its place."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                yield from ((f"{place}.{name}", inner) for name, inner in value.items())
            yield from schemas(value, f"{place}.{key}")
    elif isinstance(schema, list):
        for value in schema:
            yield from schemas(value, place)


def test_every_key_is_described_and_its_unit_named() -> None:
    document = json.loads(SCHEMA_TEXT)
    found = dict(schemas(document))
    assert len(found) > 100
    for place, schema in found.items():
        target = document["$defs"][schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
        text = schema.get("description", "") + target.get("description", "")
        assert text.rstrip(".").strip(), place
        unit = {"s": "second", "bytes": "byte"}.get(re.split(r"[._]", place)[-1], "")
        kinds = target.get("type", ())
        if unit and {"number", "integer"} & {*([kinds] if isinstance(kinds, str) else kinds)}:
            assert unit in text, place


def test_every_object_of_the_record_is_closed() -> None:
    """What is open says so: settings, and counts by a name of the program."""
    document = json.loads(SCHEMA_TEXT)
    by_name = [
        place
        for place, schema in schemas(document)
        if "object" in schema.get("type", ()) and schema["additionalProperties"] is not False
    ]
    assert {place.rpartition(".")[2] for place in by_name} == {
        *("workload", "config", "bytes_by_why", "recomputed_by_op", "openblas_variables"),
        *("ratios", "engine_ratios", "asked_by_op", "left_by_op", "point"),
        *("before_bytes", "after_bytes"),
    }


def test_two_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    data = printed(capsys, *SMALL)
    check(data)
    assert [entry["judgement"] is None for entry in data["strategies"]] == [True, False]


@pytest.mark.parametrize("arguments", [("-s", "none"), ("-s", "balanced", "--no-reference")])
def test_one_strategy(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    data = printed(capsys, *SMALL, *arguments)
    check(data)
    assert [entry["ratios"] for entry in data["strategies"]] == [None]


def test_one_strategy_beside_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    data = printed(capsys, *SMALL, "-s", "balanced")
    check(data)
    assert [entry["reference"] for entry in data["strategies"]] == [True, False]


@pytest.mark.slow
def test_every_kind_of_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["none", "balanced", "remat", "sqrt", "segments:2"]
    data = printed(capsys, *SMALL, *(part for name in names for part in ("-s", name)))
    check(data)
    assert [entry["strategy"] for entry in data["strategies"]] == names


@pytest.mark.slow
def test_rounds_until_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    data = printed(capsys, "--layers", "1", "--n", "8", "--max-time", "0.001")
    check(data)
    assert data["rounds"] == 9
    assert data["strategies"][1]["ratios"]["total"]["exact"]


def test_a_graph_file(capsys: pytest.CaptureFixture[str], program: Callable[[Any], str]) -> None:
    data = printed(capsys, "--workload", program(GRAPH), "--reps", "1", "--warmup", "0")
    check(data)
    (node,) = [n for n in data["strategies"][1]["trace"]["nodes"] if n["held_for_constants"]]
    assert node["held_for_constants"] == [1]
    assert data["strategies"][0]["passes"]["warmup"] == []


def test_a_loss_that_is_not_finite(
    capsys: pytest.CaptureFixture[str], program: Callable[[Any], str]
) -> None:
    data = printed(capsys, "--workload", program(DIVERGED), "--reps", "1")
    validate(data)
    assert [entry["loss"] for entry in data["strategies"]] == [None, None]
    assert "strategies[1].loss is inf, printed as null" in data["warnings"]
    back = read_record(json.dumps(data), "text")
    assert all(math.isnan(strategy.outcome.loss) for strategy in back.rows)
    validate(record_object(back))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_an_interrupted_run(rounds: int) -> None:
    def stop(record: RunRecord) -> None:
        assert record.partial
        check(record_object(record))
        if record.rounds == rounds:
            raise KeyboardInterrupt

    plan = Plan(reps=5, warmup=1)
    record = profile(SiluWorkload(layers=1, n=8), plan=plan, finished=stop)
    assert (record.partial, record.rounds, record.stopped) == (True, rounds, "interrupted")
    check(record_object(record))
    assert read_record(record_json(record), "text") == record


@pytest.mark.slow
@pytest.mark.slow
def test_a_long_program_stays_small(
    capsys: pytest.CaptureFixture[str], program: Callable[[Any], str]
) -> None:
    ops = [{"op": "sin", "in": [i]} for i in range(LONGEST + 100)]
    leaf = {"op": "leaf", "req": True, "data": [0.5]}
    data = printed(capsys, "--workload", program({"ops": [leaf, *ops]}), "--reps", "1")
    check(data)


def test_what_was_measured_is_read_back_as_it_was() -> None:
    record = profile(SiluWorkload(layers=2, n=8), plan=Plan(reps=7))
    assert read_record(record_json(record), "text") == record


times = st.floats(min_value=1e-9, max_value=1e6)
many_times = st.lists(times, max_size=12)


@pytest.mark.slow
@given(own=many_times, reference=many_times, warnings=st.lists(st.text(), max_size=3))
@settings(max_examples=25, deadline=None)
def test_any_finite_record_is_valid_and_read_back(
    own: list[float], reference: list[float], warnings: list[str]
) -> None:
    record = run_record(
        none_record(reference), balanced_record(own[: len(reference)]), warnings=tuple(warnings)
    )
    data = json.loads(record_json(record))
    validate(data)
    assert read_record(json.dumps(data), "text") == record


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_figure_that_is_not_finite_is_null_and_named(value: float) -> None:
    outcome = replace(none_record().outcome, grad_sum_w0=value)
    data = record_object(run_record(none_record(outcome=outcome), balanced_record()))
    validate(data)
    assert data["strategies"][0]["grad_sum_w0"] is None
    assert data["warnings"] == [f"strategies[0].grad_sum_w0 is {value}, printed as null"]


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    bin_ = Path(sys.executable).parent
    if not (bin_ / "ckpt").exists():
        pytest.skip("ckpt is not installed beside this Python")
    blocks = re.findall(r"((?:^    .*\n)+)", PAGE.read_text(), flags=re.M)
    script = textwrap.dedent("".join(blocks)).replace("ckpt run", "ckpt run -n 8 --reps 1 -q")
    done = subprocess.run(
        ["bash", "-ec", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    *schema, none, balanced = done.stdout.splitlines()
    assert json.loads("\n".join(schema)) == json.loads(SCHEMA_TEXT)
    assert (none.split()[:2], balanced.split()[:2]) == (["none", "5888"], ["balanced", "2048"])


def test_the_page_names_only_keys_that_exist() -> None:
    table = re.findall(r"^\|.*\| (.*) \|$", PAGE.read_text(), flags=re.M)
    named = {name for row in table for name in re.findall(r"`([a-z_0-9.\[\]]+)`", row)}
    known = {place.rpartition(".")[2] for place, _ in schemas(json.loads(SCHEMA_TEXT))}
    words = {part for name in named for part in name.replace("[]", "").split(".")}
    values = {"wrong", "total", "ckpt"}  # a word of the judgement, a phase, an engine
    assert words - known == values
