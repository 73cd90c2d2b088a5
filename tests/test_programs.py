"""`--workload FILE.py:FUNCTION`: a program of the user's own, and what is said of a wrong one."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli import Plan, device, profile
from ckptcli.backends import numpy_namespace, open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import (
    CkptError,
    DtypeError,
    OutOfMemoryError,
    ProgramError,
    UnknownNameError,
    UsageError,
)
from ckptcli.profiling.log_pass import log_pass
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.verify.check import check
from ckptcli.workloads.options import WorkloadOptions
from ckptcli.workloads.program import ProgramWorkload
from ckptcli.workloads.registry import open_workloads
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH, torch_device
from tests.refusing_backend import RefusingBackend

Capture = pytest.CaptureFixture[str]

SILU = """
import numpy as np

LAYERS, N = 4, 8

def make(device):
    rng = np.random.Generator(np.random.PCG64(0))
    scale = 1.0 / np.sqrt(N)
    w = [rng.normal(0.0, scale, (N, N)).astype("float32") for _ in range(LAYERS)]
    w = [device.tensor(values).require_grad() for values in w]
    x = device.tensor(rng.random((N, N)).astype("float32"))

    def loss():
        h = x
        for layer in device.layers(LAYERS):
            h = h.matmul(w[layer]).silu()
        return h.sum()

    return loss
"""

SQUARE = """
def make(device):
    w = device.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad()
    x = device.tensor([[1.0, 0.5]])
    return lambda: (x @ w).square().sum()
"""

Opener = Callable[..., ProgramWorkload]


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """Writes a program, opens `make` of it with these options."""

    def open_text(text: str, name: str = "make", **options: Any) -> ProgramWorkload:
        path = tmp_path / "mine.py"
        path.write_text(text)
        (workload,) = open_workloads(f"{path}:{name}", WorkloadOptions(**options))
        assert isinstance(workload, ProgramWorkload)
        return workload

    return open_text


@pytest.fixture
def told(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command on a program beside the caller; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *command: str, name: str = "make") -> tuple[int, str, str]:
        Path("mine.py").write_text(text)
        arguments = command or ("log",)
        code = run_command([*arguments, "--workload", f"mine.py:{name}"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


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
    assert record.workload == {"name": "program", "file": str(path), "function": "make"}
    assert record.title == f"program = {path}:make"
    assert [s.outcome.loss for s in record.strategies] == [22.25, 22.25]


def test_the_log_has_burns_ids_from_0(told: Callable[..., Any]) -> None:
    code, out, _ = told(SQUARE.replace(".square()", ""), "log", "--json", "-s", "none")
    assert code == 0
    found = json.loads(out)
    assert found["log"] == [
        "retrieve_node_output NodeId { value: 1 }: 1 node(s) to compute",
        "execute_retro_forward NodeId { value: 1 }",
    ]
    assert found["gradients"] == {"w": [1.0, 1.0, 0.5, 0.5]}


@pytest.mark.parametrize("prefix", ["", "program:"])
def test_both_ways_to_write_it(told: Callable[..., Any], prefix: str, capsys: Capture) -> None:
    Path("mine.py").write_text(SQUARE)
    assert run_command(["log", "--workload", f"{prefix}mine.py:make"]) == 0
    assert "NodeId" in capsys.readouterr().out


def test_saved_names_the_line(told: Callable[..., Any]) -> None:
    code, out, _ = told(SQUARE, "saved", "--json", "-s", "none")
    assert code == 0
    (held,) = json.loads(out)["strategies"][0]["saved"]
    assert held["source"] == "mine.py:5"


def test_check_proves_it_in_float64(opened: Opener) -> None:
    precise = opened(SILU, dtype="float64")
    found = check(opened(SILU), parse_strategy("remat"), precise)
    assert found.passed
    assert found.gradients == 4
    assert len(found.differences) == 3
    assert all(d.is_usable and d.relative_error < 1e-7 for d in found.differences)


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
    assert [strategy.strategy for strategy in record.strategies] == ["balanced"]
    (failure,) = record.failures
    assert (failure.strategy, failure.phase) == ("none", "forward")
    assert failure.live.bytes_by_why["input"] == 7 * 1024
    gc.collect()
    assert backend.ledger.bytes_in_use == 0


def test_operands_of_two_dtypes_are_told(told: Callable[..., Any]) -> None:
    code, _, err = told(program_that("return w * device.tensor([1.0], 'float64')"), "saved")
    assert code == 1
    assert "mine.py:4 (`return w * device.tensor([1.0], 'float64')`): `mul` got operands of" in err


def test_the_seed_decides_the_draws(opened: Opener) -> None:
    program = """
def make(device):
    w = device.normal((3,)).require_grad()
    return lambda: (w * device.uniform((3,))).sum()
"""
    first, same, other = (opened(program, seed=seed) for seed in (0, 0, 1))
    assert first.parameters()["w"].tolist() == same.parameters()["w"].tolist()
    assert first.parameters()["w"].tolist() != other.parameters()["w"].tolist()
    assert not first.notes


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


def test_what_it_prints_is_not_the_result(told: Callable[..., Any]) -> None:
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


def test_an_option_without_effect_is_named(told: Callable[..., Any]) -> None:
    _, _, err = told(SQUARE, "log", "--layers", "3", "--seed", "1")
    assert err == "warning: --layers has no effect on workload `program`\n"


def program_that(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        "def make(device):\n"
        "    w = device.tensor([[1.0, 2.0]]).require_grad()\n"
        "    def loss():\n"
        f"{lines}"
        "    return loss\n"
    )


FAILURES = {
    "an op": ("return w @ w", "mine.py:4 (`return w @ w`): `matmul` cannot take shape [1, 2]"),
    "python": (
        "return w * (1 / 0)",
        "mine.py:4 (`return w * (1 / 0)`): ZeroDivisionError: division by zero",
    ),
    "a raise": (
        "raise ValueError('no\\nmore')",
        "(`raise ValueError('no\\nmore')`): ValueError: no",
    ),
    "exit": ("import sys\nsys.exit(3)", "mine.py:5 (`sys.exit(3)`): SystemExit: 3"),
    "not an Exception": ("raise GeneratorExit", "mine.py:4 (`raise GeneratorExit`): GeneratorExit"),
    "no text": ("assert False", "mine.py:4 (`assert False`): AssertionError"),
    "recursion": ("return loss()", "mine.py:4 (`return loss()`): RecursionError: maximum"),
    "in a library": (
        "import json\njson.loads('{')",
        "mine.py:5 (`json.loads('{')`): JSONDecodeError",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
@pytest.mark.parametrize("command", ["log", "check", "saved", "run"])
def test_a_failure_names_the_users_line(told: Callable[..., Any], case: str, command: str) -> None:
    body, message = FAILURES[case]
    code, out, err = told(program_that(body), command)
    assert (code, out) == (1, "")
    assert err.startswith("Error: `mine.py:make` failed at ")
    assert message in err
    assert err.count("\n") == (3 if "hint" in err else 1)


def test_a_failure_before_the_loss_names_its_line_too(told: Callable[..., Any]) -> None:
    code, _, err = told("def make(device):\n    return device.tensor('x')\n")
    assert code == 1
    assert "failed at mine.py:2 (`return device.tensor('x')`): " in err


def test_a_failure_in_a_module_beside_it_names_that(
    told: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "a_helper_that_fails.py").write_text("def helper(w):\n    return w[0]['x']\n")
    program = "from a_helper_that_fails import helper\n" + program_that("return helper(w)")
    code, _, err = told(program)
    assert code == 1
    assert "a_helper_that_fails.py:2 (`return w[0]['x']`): " in err


WRONG_USE = {
    "no function": ("make = 3", "`mine.py:make` is a int, not a function", "takes the device"),
    "no argument": (
        "def make(): pass",
        "`mine.py:make` cannot be called: too many positional arguments",
        "takes the device",
    ),
    "nothing returned": (
        "def make(device): pass",
        "what `mine.py:make` returns is None, not a function",
        "takes no arguments",
    ),
    "a loss with an argument": (
        "def make(device): return lambda x: x",
        "what `mine.py:make` returns cannot be called: missing a required argument: 'x'",
        "takes no arguments",
    ),
    "no tensor": (program_that("return 3.0"), "returned a float", "return a tensor"),
    "two tensors": (program_that("return w, w"), "returned a tuple", "return a tensor"),
    "another device": (
        program_that("from ckptcli import device as d\nreturn d().autodiff().tensor([1.0])"),
        "a tensor of another device, Device<Autodiff",
        "on the device that the function gets",
    ),
    "no parameter": (
        "def make(device):\n    x = device.tensor([1.0])\n    return lambda: x * x",
        "has no parameter",
        "call `require_grad()`",
    ),
    "a constant": (
        program_that("return device.tensor([1.0])"),
        "that no parameter leads to",
        "computed from the parameters",
    ),
    "computed outside": (
        "def make(device):\n"
        "    w = device.tensor([1.0]).require_grad()\n"
        "    v = w * w\n"
        "    return lambda: v * w",
        "uses a tensor that the function computed from a parameter",
        "inside the loss",
    ),
    "backward inside": (
        program_that("l = (w * w).sum()\nl.backward()\nreturn l"),
        "calls backward() itself",
        "return the loss",
    ),
    "syntax": (
        "def make(device:\n    pass",
        "`mine.py` cannot be loaded at mine.py:1 (`def make(device:`): SyntaxError: '(' was never",
        "",
    ),
    "loading fails": ("x = 1 / 0", "`mine.py` cannot be loaded at mine.py:1 (`x = 1 / 0`)", ""),
    "loading exits": ("raise SystemExit", "cannot be loaded at mine.py:1", ""),
    "a name that is not there": (
        "def mak(device): pass",
        "unknown name in `mine.py`: `make`",
        "mak",
    ),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_a_wrong_program_is_a_wrong_command_line(told: Callable[..., Any], case: str) -> None:
    program, message, hint = WRONG_USE[case]
    code, out, err = told(program)
    assert (code, out) == (2, "")
    assert message in err
    assert hint in err.partition("hint: ")[2]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("absent.py:make", UsageError, "`absent.py` cannot be loaded: FileNotFoundError"),
        ("absent.py", UsageError, r"`absent.py` names no function; write `absent.py:FUNCTION`"),
        ("program", UsageError, "write `FILE.py:FUNCTION`"),
        ("absent.pie:make", UnknownNameError, "unknown workload `absent.pie`"),
    ],
)
def test_what_is_not_there_is_named(text: str, error: type[CkptError], message: str) -> None:
    with pytest.raises(error, match=message):
        open_workloads(text, WorkloadOptions())


def test_what_does_not_fit_in_memory(opened: Opener) -> None:
    program = "import numpy\n" + program_that("return numpy.empty(2**50)")
    with pytest.raises(OutOfMemoryError, match=r"does not fit in memory at .*mine.py:5 ") as told:
        opened(program)
    assert told.value.hint == "use smaller tensors in the program"


@pytest.mark.parametrize("command", ["run", "check", "log", "saved"])
@pytest.mark.parametrize("where", ["weights", "loss"])
def test_a_program_that_draws_elsewhere_is_not_called_wrong(
    told: Callable[..., Any], command: str, where: str
) -> None:
    """Neither a strategy nor a gradient is blamed: the exit code is not 5."""
    program = f"""
import random

def make(device):
    w = device.tensor([random.random() if {where == "weights"} else 1.0]).require_grad()
    return lambda: w * (random.random() if {where == "loss"} else 1.0)
"""
    code, out, err = told(program, command)
    assert (code, out) == (1, "")
    assert "`mine.py:make` does something else each time: the loss is 0." in err
    assert "device.uniform" in err


def test_a_generator_seeded_inside_is_fine(opened: Opener) -> None:
    program = """
import random

def make(device):
    random.seed(7)
    w = device.tensor([random.random()]).require_grad()
    return lambda: w * w
"""
    assert opened(program).notes == ()


def test_a_loss_that_takes_another_batch_each_time_is_noted(told: Callable[..., Any]) -> None:
    """Memory and gradients are those of the first call, and right."""
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    batches = iter(range(1, 1000))
    return lambda: w * float(next(batches))
"""
    code, _, err = told(program, "check")
    assert code == 0
    assert "warning: `mine.py:make`: the loss is 1.0 in its first call and 2.0 in the second" in err


def test_a_loss_that_grows_is_noted(opened: Opener) -> None:
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    kept = []
    def loss():
        kept.append(device.tensor([1.0]))
        return sum((w * one for one in kept[1:]), w * kept[0])
    return loss
"""
    notes = opened(program).notes
    assert "makes 2 nodes in its first call and 4 in the second" in notes[1]


def test_what_is_carried_over_ends_with_one_sentence(told: Callable[..., Any]) -> None:
    program = """
def make(device):
    w = device.tensor([2.0]).require_grad()
    state = [w]
    def loss():
        state[0] = state[0] * w
        return state[0]
    return loss
"""
    code, _, err = told(program, "run", "--reps", "2")
    assert code == 1
    assert "which an earlier backward pass has used up" in err


def test_an_error_of_one_strategy_alone_is_told_too(opened: Opener) -> None:
    """What the first run does not meet."""
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    def loss():
        if device.strategy.name == "balanced":
            raise ValueError("not me")
        return w * w
    return loss
"""
    workload = opened(program)
    with pytest.raises(ProgramError, match="ValueError: not me"):
        memory_pass(workload, device(), parse_strategy("balanced"))


def test_a_file_without_its_suffix_is_asked_after(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    for text, hint in [
        ("mine:make", "did you mean `mine.py:make`?"),
        ("yours:make", "known: FILE.py:FUNCTION, chain, graph, silu, trg"),
        ("trk", "did you mean `trg`?"),
    ]:
        assert run_command(["log", "--workload", text]) == 2
        assert f"hint: {hint}" in capsys.readouterr().err
