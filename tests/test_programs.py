"""`--workload FILE.py:MAKE`: a program of the user's own, in every command."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ckptcli import Plan, device, profile
from ckptcli.backends import numpy_namespace, open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import (
    DtypeError,
    ProgramError,
)
from ckptcli.profiling.log_pass import log_pass
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.verify.check import check
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH, torch_device
from tests.program_kit import SILU, SQUARE, Command, Opener
from tests.refusing_backend import RefusingBackend

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("strategy", ["none", "balanced", "remat", "sqrt", "segments:2"])
def test_the_silu_network_written_by_hand_is_the_silu_network(
    opened: Opener, strategy: str
) -> None:
    chosen = parse_strategy(strategy)
    mine = memory_pass(opened(SILU), device(), chosen)
    theirs = memory_pass(SiluWorkload(4, 8), device(), chosen)
    assert mine.memory.saved_bytes == theirs.memory.saved_bytes
    assert mine.memory.params_input_bytes == theirs.memory.params_input_bytes
    assert mine.outcome.loss == theirs.outcome.loss
    assert mine.outcome.recomputed_by_op == theirs.outcome.recomputed_by_op


def test_gradients_are_those_of_the_silu_network(opened: Opener) -> None:
    chosen = parse_strategy("remat:every=2")
    mine = log_pass(opened(SILU), chosen, None).gradients
    theirs = log_pass(SiluWorkload(4, 8), chosen, None).gradients
    assert list(mine) == ["w[0]", "w[1]", "w[2]", "w[3]"]
    assert list(mine.values()) == list(theirs.values())


def test_what_a_record_says_of_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SQUARE)
    record = profile(f"{path}:make", ["none", "balanced"], plan=Plan(2))
    settings = {"name": "program", "file": str(path), "function": "make"}
    assert record.workload == {**settings, "title": record.title}
    assert record.title == f"program = {path}:make"
    assert [s.outcome.loss for s in record.rows] == [22.25, 22.25]


def test_the_log_has_burns_ids_from_0(told: Command) -> None:
    code, out, _ = told(SQUARE.replace(".square()", ""), "log", "--json", "-s", "none")
    assert code == 0
    found = json.loads(out)
    assert found["log"] == [
        "retrieve_node_output NodeId { value: 1 }: 1 node(s) to compute",
        "execute_retro_forward NodeId { value: 1 }",
    ]
    assert found["gradients"] == {"w": [1.0, 1.0, 0.5, 0.5]}


@pytest.mark.parametrize("prefix", ["", "program:"])
def test_both_ways_to_write_it(told: Command, prefix: str, capsys: Capture) -> None:
    Path("mine.py").write_text(SQUARE)
    assert run_command(["log", "--workload", f"{prefix}mine.py:make"]) == 0
    assert "NodeId" in capsys.readouterr().out


def test_saved_names_the_line(told: Command) -> None:
    code, out, _ = told(SQUARE, "saved", "--json", "-s", "none")
    assert code == 0
    (held,) = json.loads(out)["strategies"][0]["saved"]
    assert held["source"] == "mine.py:5"


def test_check_proves_it_in_float64(opened: Opener) -> None:
    precise = opened(SILU, dtype="float64")
    found = check(opened(SILU), parse_strategy("remat"), precise)
    assert found.passed
    assert found.gradients == 4
    assert [d.parameters for d in found.differences] == [(f"w[{i}]",) for i in range(4)]
    assert all(d.is_usable and d.apart < 1e-7 for d in found.differences)


def test_check_sees_a_wrong_gradient_in_it(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The differences move the program's own parameters, and so find what is wrong."""
    program = SQUARE.replace(".square()", ".cos()")
    precise = opened(program, dtype="float64")
    assert check(precise, parse_strategy("none"), precise).passed
    monkeypatch.setattr(numpy_namespace, "sin", lambda x, *_: 1.5 * np.sin(x))  # cos' is -sin
    assert not check(precise, parse_strategy("none"), precise).passed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_dtype_given_is_that_of_every_tensor(opened: Opener, dtype: str) -> None:
    program = """
def make(device):
    a = device.tensor([1.0, 2.0]).require_grad()
    b = device.tensor([1.0, 2.0], "float64").require_grad()
    c = device.normal((2,)).require_grad()
    return lambda: (a * c).cast("float64") * b
"""
    arrays = opened(program, dtype=dtype).parameters()
    names = {"a": dtype, "b": "float64", "c": dtype}
    assert {name: array.dtype.name for name, array in arrays.items()} == names
    if dtype == "float64":
        single = opened(program).parameters()["c"]
        assert (arrays["c"].astype("float32") == single).all()


@pytest.mark.parametrize("named", [False, True])
def test_a_dtype_that_the_host_lacks_is_left_to_the_backend_that_has_it(
    opened: Opener, named: bool
) -> None:
    """The program is tried out all the same; who has the dtype can run it."""
    program = """
def make(device):
    w = device.tensor([1.0], DTYPE).require_grad()
    return lambda: w * w
""".replace("DTYPE", "'bfloat16'" if named else "None")
    workload = opened(program, dtype="float32" if named else "bfloat16")
    assert workload.parameters()["w"].dtype == np.float32
    with pytest.raises((DtypeError, ProgramError), match=r"no dtype|cannot have dtype `bfloat16`"):
        workload.load(device().autodiff())


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_on_another_backend_it_holds_what_it_holds_on_numpy(opened: Opener, dtype: str) -> None:
    workload = opened(SILU, dtype=dtype)
    strategy = parse_strategy("remat:every=2")
    there = memory_pass(workload, torch_device(), strategy)
    here = memory_pass(opened(SILU), device(), strategy)
    assert there.outcome.recomputed_by_op == here.outcome.recomputed_by_op
    share = 2 if dtype == "bfloat16" else 1
    assert there.memory.saved_bytes * share == here.memory.saved_bytes
    assert there.outcome.loss == pytest.approx(here.outcome.loss, rel=0.02 if share == 2 else 1e-5)


def refused_by_torch() -> Exception:
    return RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("numpy", MemoryError),
        pytest.param("torch", refused_by_torch, marks=[NEEDS_TORCH, pytest.mark.slow]),
    ],
)
def test_where_memory_ends_the_other_strategies_still_run(
    opened: Opener, name: str, error: Callable[[], Exception]
) -> None:
    backend = RefusingBackend(open_backend(name), 20 * 1024, error)
    workload = opened(SILU.replace("4, 8", "6, 16"))
    record = profile(workload, ["none", "balanced"], backend=backend, plan=Plan(2))
    assert [strategy.strategy for strategy in record.rows] == ["balanced"]
    (failure,) = record.failures
    assert (failure.strategy, failure.phase) == ("none", "forward")
    assert failure.live.bytes_by_why["input"] == 7 * 1024
    gc.collect()
    assert backend.ledger.bytes_in_use == 0


def test_with_parameters_moves_what_is_named(opened: Opener) -> None:
    workload = opened(SQUARE)
    moved = workload.with_parameters({"w": np.zeros((2, 2), "float32")})
    dev = device().autodiff()
    assert moved.load(dev).forward().root.item() == 0.0
    assert moved.parameters()["w"].sum() == 0.0
    assert workload.load(dev).forward().root.item() == 22.25


NAMED = """
import functools

class Layer:
    def __init__(self, device):
        self.w = device.tensor([1.0]).require_grad()

class Model:
    def __init__(self, device):
        self.layers = [Layer(device), Layer(device)]
        self.table = {"bias": device.tensor([2.0]).require_grad()}
        self.itself = self

    def __call__(self):
        return self.layers[0].w * self.layers[1].w + self.table["bias"]

    def loss(self):
        return self()

def method(device):
    return Model(device).loss

def nested(device):
    a = device.tensor([1.0]).require_grad()
    def block(x):
        return x * a
    def loss(b=device.tensor([3.0]).require_grad()):
        return block(b)
    return loss

def partial(device):
    def loss(first, second):
        return first * second
    leaf = device.tensor([1.0]).require_grad()
    return functools.partial(loss, leaf, second=device.tensor([1.0]).require_grad())

def wrapped(device):
    from ckptcli.autodiff.regions import checkpoint
    w = device.tensor([1.0]).require_grad()
    return checkpoint(lambda: w * w)

class Touchy:
    __slots__ = ()
    def __getattr__(self, name):
        raise RuntimeError(name)

def touchy(device):
    w, object_of_ones_own = device.tensor([1.0]).require_grad(), Touchy()
    return lambda: w * w if object_of_ones_own is not None else w

def hidden(device):
    global leaf
    leaf = device.tensor([1.0]).require_grad()
    other = device.tensor([1.0]).require_grad()
    return lambda: leaf * other

def late(device):
    w = device.tensor([1.0]).require_grad()
    def loss():
        return w * device.tensor([2.0]).require_grad() + unset
    if device is None:
        unset = 0.0
    unset = 1.0
    return loss

def twice(device):
    x = device.tensor([1.0])
    a, b = x.require_grad(), x.require_grad()
    return lambda: a * b
"""


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("Model", ["layers[0].w", "layers[1].w", "table['bias']"]),
        ("method", ["layers[0].w", "layers[1].w", "table['bias']"]),
        ("nested", ["block.a", "b"]),
        ("partial", ["first", "second"]),
        ("wrapped", ["w"]),
        ("touchy", ["w"]),
        ("hidden", ["leaf 0", "other"]),
        ("late", ["w", "leaf 1"]),
        ("twice", ["a"]),
    ],
)
def test_the_names_of_parameters(opened: Opener, function: str, names: list[str]) -> None:
    workload = opened(NAMED, function)
    assert list(workload.parameters()) == names
    passed = log_pass(workload, parse_strategy("none"), None)
    assert list(passed.gradients) == names


def test_regions_and_layers_of_its_own(opened: Opener) -> None:
    program = """
from ckptcli.autodiff.regions import checkpoint

def make(device):
    w = device.tensor([[0.5, 0.1], [0.2, 0.3]]).require_grad()
    x = device.tensor([[1.0, 2.0]])
    block = checkpoint(lambda h: (h @ w).silu())

    def loss():
        h = block(x)
        with h.region("second"):
            h = (h @ w).silu()
        for _ in device.layers(3):
            h = (h @ w).silu()
        for _ in device.layers(2):
            h = h.sigmoid()
        return h

    return loss
"""
    workload = opened(program)
    assert workload.layer_count == 3
    none, remat = (
        memory_pass(workload, device(), parse_strategy(name)) for name in ("none", "remat")
    )
    assert none.outcome.recomputed_by_op["matmul"] == 2
    assert remat.outcome.recomputed_by_op["matmul"] == 5
    assert none.outcome.grad_sha256 == remat.outcome.grad_sha256


def test_a_module_beside_it_can_be_imported(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "beside_the_program.py").write_text("SIZE = 2\n")
    program = """
from __future__ import annotations
from dataclasses import dataclass
from beside_the_program import SIZE

@dataclass
class Config:
    size: int = SIZE

def make(device):
    w = device.tensor([1.0] * Config().size).require_grad()
    return lambda: w
"""
    assert opened(program).parameters()["w"].shape == (2,)


def test_what_it_needs_is_what_its_forward_pass_holds_at_once(opened: Opener) -> None:
    program = """
def make(device):
    w = device.tensor([1.0] * 1000).require_grad()

    def loss():
        h = w
        for _ in range(5):
            h = h.exp()
        return h.sum()

    return loss
"""
    needed = opened(program).needed_bytes(["none"])
    assert 3 * 4000 <= needed < 4 * 4000


def test_what_it_prints_is_not_the_result(told: Command) -> None:
    program = """
print("loaded")
def make(device):
    print("made")
    w = device.tensor([1.0]).require_grad()
    def loss():
        print("called")
        return w * w
    return loss
"""
    code, out, err = told(program, "log", "--json")
    assert code == 0
    assert json.loads(out)["gradients"] == {"w": [2.0]}
    assert {"loaded", "made", "called"} <= set(err.split())


def test_an_option_without_effect_is_named(told: Command) -> None:
    _, _, err = told(SQUARE, "log", "--layers", "3", "--seed", "1")
    assert err == "warning: --layers has no effect on workload `program`\n"
