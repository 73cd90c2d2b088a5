"""`ckpt check`: it passes what is right, and names what is wrong."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ckptcli.autodiff.device import device
from ckptcli.autodiff.ops.activation import SIGMOID
from ckptcli.autodiff.ops.trigonometric import SIN
from ckptcli.checkpoint.checkpointer import Checkpointer
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.graph import Node
from ckptcli.measure.difference import DirectionalDifference
from ckptcli.verify.bits import first_difference
from ckptcli.verify.check import check
from ckptcli.workloads.silu import SiluWorkload

DATA = Path(__file__).parent / "data"
SINGLE = SiluWorkload(layers=3, n=8)
DOUBLE = SiluWorkload(layers=3, n=8, dtype="float64")


@pytest.fixture
def unfaithful_sigmoid() -> Iterator[None]:
    """From its fourth call on, the sigmoid of a three-layer network is one ulp off."""
    forward = SIGMOID.forward
    calls = 0

    def drifting(xp: object, x: np.ndarray, params: object) -> np.ndarray:
        nonlocal calls
        calls += 1
        value: np.ndarray = forward(xp, x, params)
        if calls > 3:
            value[1, 2] = np.nextafter(value[1, 2], value.dtype.type(2))
        return value

    object.__setattr__(SIGMOID, "forward", drifting)
    yield
    object.__setattr__(SIGMOID, "forward", forward)


@pytest.mark.parametrize("strategy", ["none", "balanced", "remat", "remat:every=3,names=p", "sqrt"])
def test_every_strategy_passes(strategy: str) -> None:
    found = check(SINGLE, parse_strategy(strategy), DOUBLE)
    assert found.passed
    assert (found.gradients, found.wrong_gradients, found.wrong_values) == (3, (), ())
    assert found.compared == {"none": 0, "balanced": 5}.get(strategy, found.compared)
    assert len(found.differences) == 3
    assert all(d.is_usable and d.apart < 1e-8 for d in found.differences)


@pytest.mark.usefixtures("unfaithful_sigmoid")
def test_a_recomputed_value_one_ulp_off_is_named() -> None:
    found = check(SINGLE, parse_strategy("balanced"), DOUBLE)
    assert not found.passed
    wrong = found.wrong_values[0]
    assert (wrong.node, wrong.op) == (5, "sigmoid")
    assert wrong.source.startswith("ckptcli/workloads/silu.py:")
    assert (wrong.difference.element, wrong.difference.ulp) == ((1, 2), 1.0)


@pytest.mark.usefixtures("unfaithful_sigmoid")
def test_the_command_ends_with_5_and_the_evidence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["check", "-q", "--layers", "3", "--n", "8"]) == 5
    text = capsys.readouterr().out
    assert "balanced: FAILED" in text
    assert "node 11 (sigmoid, layer 2, ckptcli/workloads/silu.py:" in text
    assert "element [1, 2]" in text


@pytest.mark.slow
def test_the_recorded_programs_pass(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "burn_conformance.jsonl"
    assert run_command(["check", "-q", "--json", "--workload", f"graph:{path}"]) == 0
    programs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(programs) == 400
    assert all(found["passed"] for program in programs for found in program["checks"])
    assert sum(bool(program["checks"][0]["differences"]) for program in programs) > 150


def test_a_wrong_gradient_and_an_unusable_difference_are_told_apart() -> None:
    assert DirectionalDifference(1.0, 1.0 + 1e-9, 1e-10).agrees
    assert not DirectionalDifference(1.0, 1.1, 1e-10).agrees
    assert DirectionalDifference(1.0, 1.1, 1e-10).is_usable
    assert not DirectionalDifference(1.0, 1.1, 0.5, reason="a kink").is_usable


@pytest.mark.parametrize(
    ("expected", "found", "element", "ulp"),
    [
        ([1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], (1,), 1.0),
        ([0.0], [-0.0], (0,), 0.0),
        ([np.nan, 1.0], [np.nan, 1.5], (1,), 2.0**51),
        ([1.0], [np.nan], (0,), None),
        ([1.0], [1.0, 1.0], (), None),
    ],
)
def test_where_two_arrays_first_differ(
    expected: list[float], found: list[float], element: tuple[int, ...], ulp: float | None
) -> None:
    difference = first_difference(np.array(expected), np.array(found))
    assert difference is not None
    assert (difference.element, difference.ulp) == (element, ulp)


def test_equal_bits_do_not_differ() -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf])
    assert first_difference(values, values.copy()) is None


@pytest.fixture
def wrong_sine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sine that is computed again comes back a little off."""
    retro_forward = Checkpointer.retro_forward

    def drifting(self: Checkpointer, node: Node) -> None:
        retro_forward(self, node)
        if node.op is SIN:
            self.values[node.id] = self.values[node.id] + 1e-3

    monkeypatch.setattr(Checkpointer, "retro_forward", drifting)


@pytest.mark.usefixtures("wrong_sine")
def test_a_failure_leaves_the_smallest_graph_that_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten ops; the fault needs a sine whose value is retrieved: leaf, sin, exp and no more."""
    monkeypatch.chdir(tmp_path)
    ops: list[dict[str, object]] = [{"op": "leaf", "req": True, "data": [0.1, 0.2]}]
    for name in ("exp", "cos", "sin", "exp", "cos", "exp", "cos", "exp"):
        ops.append({"op": name, "in": [len(ops) - 1]})
    ops.append({"op": "sum", "in": [len(ops) - 1]})
    Path("g.json").write_text(json.dumps({"ops": ops}))
    words = ["check", "--workload", "graph:g.json"]
    assert run_command(words) == 5
    assert "next: --save-failing FILE" in capsys.readouterr().err
    assert os.listdir() == ["g.json"]
    assert run_command([*words, "--save-failing", "small.json"]) == 5
    command = "ckpt check --workload graph:small.json -s balanced"
    assert command in capsys.readouterr().err
    written = json.loads(Path("small.json").read_text())
    assert [op["op"] for op in written["ops"]] == ["leaf", "exp", "cos", "sin", "exp"]
    assert written["strategy"] == "balanced"
    assert run_command(shlex.split(command)[1:]) == 5
    assert run_command([*words, "--save-failing", "small.json"]) == 2
    assert "`small.json` exists already" in capsys.readouterr().err


def test_what_is_printed_for_a_fault_on_purpose_shows_it_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two strategies fail: a graph a line, and a command each, with the fault."""
    monkeypatch.chdir(tmp_path)
    leaf = {"op": "leaf", "req": True, "data": [0.1, 0.7]}
    division = {"op": "div", "in": [1, 2]}
    ops = [leaf, {"op": "exp", "in": [0]}, {"op": "cos", "in": [0]}, division]
    ops += [{"op": "mul", "in": [3, 3]}, {"op": "sum", "in": [4]}]
    Path("g.json").write_text(json.dumps({"ops": ops}))
    words = ["check", "--workload", "graph:g.json", "--perturb-replay", "float32"]
    assert run_command([*words, "--save-failing", "small.json"]) == 5
    (line,) = capsys.readouterr().err.splitlines()
    command = line.removeprefix("the smallest graph that fails: ")
    assert command.endswith(" --perturb-replay float32")
    assert run_command(shlex.split(command)[1:]) == 5
    assert run_command(["check", "--workload", "graph:small.json"]) == 0


def test_a_fault_on_purpose_that_changes_nothing_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of two numbers no root is a single one, so `ulp` leaves each as it is."""
    path = tmp_path / "g.json"
    path.write_text(json.dumps(NOT_FINITE))
    assert run_command(["check", "--workload", f"graph:{path}", "--perturb-replay", "ulp"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: --perturb-replay ulp changed nothing: it computed 2 values again, and each came "
        "out as in the forward pass"
    ]


def test_silu_as_a_graph_is_the_same_program() -> None:
    graph = DOUBLE.as_graph()
    device_ = device().autodiff().watched_by(None)
    expected = DOUBLE.load(device_).forward().root
    root = graph.load(device_.watched_by(None)).forward().root
    assert root.item() == expected.item()
    assert json.loads(graph.as_json())["ops"][4] == {"op": "matmul", "in": [3, 0]}


NOT_FINITE = {
    "ops": [
        {"op": "leaf", "req": True, "data": [-1.0, 4.0]},
        {"op": "leaf", "req": True, "data": [1.0, 2.0]},
        {"op": "sqrt", "in": [0]},
        {"op": "mul", "in": [1, 2]},
        {"op": "sum", "in": [3]},
    ]
}


def refused(word: str) -> float:
    raise AssertionError(f"{word} is no JSON")


def test_a_gradient_that_is_not_finite_passes_with_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(NOT_FINITE))
    assert run_command(["check", "--workload", f"graph:{path}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "balanced: passed" in lines
    assert "  not finite          nan or infinity in the gradient of 0, 1" in lines
    assert run_command(["check", "--workload", f"graph:{path}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=refused)
    (entry,) = found["checks"]
    assert (entry["passed"], entry["not_finite"]) == (True, ["0", "1"])
    assert entry["differences"][0]["gradient"] is None
    assert "checks[0].differences[0].gradient is nan, printed as null" in found["warnings"]
    assert run_command(["check", "-n", "4"]) == 0
    assert "not finite" not in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["ulp", "reciprocal", "layout"])
def test_a_fault_without_a_step_is_for_programs_without_layers_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(NOT_FINITE))
    assert run_command(["check", "--workload", f"graph:{path}", "--perturb-replay", fault]) == 0
    assert run_command(
        ["check", "--workload", f"graph:{path}", "--perturb-replay", "sign:1,a,0"]
    ) == 2  # fmt: skip
    assert "names step 1, and the program has 0" in capsys.readouterr().err
