"""Large element-wise calls on several lanes: the bits, memory and warnings of one.

Oracle: the same function of NumPy's namespace on one lane.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from ckptcli.backends import lanes as lanes_module, numpy_lanes, numpy_namespace
from ckptcli.backends.lanes import lanes_of, share
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.numpy_blocks import LARGE_ELEMENTS
from ckptcli.backends.numpy_lanes import on_lanes
from ckptcli.backends.numpy_special import IN_BLOCKS
from ckptcli.backends.workspace import Workspaces
from tests.helpers import same_bits

Array = NDArray[Any]

LANES: Any = on_lanes(2)
FUNCTIONS = sorted(
    name
    for name, value in vars(LANES).items()
    if getattr(value, "__module__", None) == numpy_lanes.__name__
)
OPERANDS = {name: getattr(numpy_namespace, name).nin for name in FUNCTIONS}
KERNELS = sorted(function.__name__ for function in IN_BLOCKS)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e30, -1e30, 700.0, -800.0]


@pytest.fixture(scope="module")
def small_parts() -> Iterator[None]:
    """Lanes from 256 elements on, in parts of 128: less time for the same cuts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_lanes, "LARGE_ELEMENTS", 256)
        patch.setattr(numpy_lanes, "PART_ELEMENTS", 128)
        yield


def laid_out(values: Array, layout: str) -> Array:
    """The same values in another layout."""
    if layout == "columns":
        return np.asfortranarray(values)
    if layout == "reversed":
        return np.ascontiguousarray(values[::-1])[::-1]
    if layout == "gaps":
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == "axes swapped":
        return np.ascontiguousarray(values.swapaxes(0, -1)).swapaxes(0, -1)
    return values


SHAPES = [(1500,), (3, 400), (40, 30), (400, 3), (1, 1500), (1500, 1), (9, 10, 11), (1, 40, 31)]
LAYOUTS = ("rows", "columns", "reversed", "gaps", "axes swapped")


@st.composite
def operands(draw: st.DrawFn, count: int) -> tuple[Any, ...]:
    """So many operands that broadcast, at least one of them an array."""
    shape = tuple(draw(st.sampled_from(SHAPES)))
    dtype = draw(st.sampled_from(["float32", "float64", "bool", "int64"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    is_scalar = count == 2 and draw(st.integers(0, 3)) == 0
    made: list[Any] = []
    for _ in range(count - is_scalar):
        own = tuple(1 if draw(st.integers(0, 3)) == 0 else size for size in shape)
        own = own[draw(st.integers(0, len(own) - 1)) :] if draw(st.booleans()) else own
        values = rng.normal(0.0, 3.0, own)
        values.flat[: draw(st.integers(0, 1000))] = draw(st.sampled_from(SPECIAL))
        with np.errstate(invalid="ignore"):
            values = values.astype(dtype)
        made.append(laid_out(values, draw(st.sampled_from(LAYOUTS))))
    if is_scalar:
        made.insert(draw(st.integers(0, 1)), draw(st.sampled_from([0.0, 2.5, 1e300, 3, np.nan])))
    return tuple(made)


def outcome(call: Callable[..., Any], *given: Any, **more: Any) -> tuple[Any, list[str]]:
    """What it returned or raised, and what it warned of, sorted."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call(*given, **more)
        except (TypeError, ValueError, FloatingPointError, OverflowError) as error:
            result = f"{type(error).__name__}: {error}"
    return result, sorted(f"{w.category.__name__}: {w.message}" for w in told)


def layout_of(array: Array) -> tuple[Any, ...]:
    return array.shape, array.dtype, array.strides, array.base is None


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_operands_give_the_bits_the_layout_and_the_warnings_of_one_lane(
    name: str, data: st.DataObject
) -> None:
    given_operands = data.draw(operands(OPERANDS[name]))
    expected, told = outcome(getattr(numpy_namespace, name), *given_operands)
    found, found_told = outcome(getattr(LANES, name), *given_operands)
    assert found_told == told
    if isinstance(expected, str):
        assert found == expected
    else:
        assert same_bits([found], [expected])
        assert layout_of(found) == layout_of(expected)


@pytest.mark.usefixtures("small_parts")
@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(["exp", "tanh", "pow", "atan2"]))
def test_any_place_to_write_to_gets_the_bits_of_one_lane(name: str, data: st.DataObject) -> None:
    """A fresh array, an operand, one that overlaps an operand, one that does not fit."""
    count, size = OPERANDS[name], data.draw(st.integers(1, 2000))
    shift = data.draw(st.integers(-2, 2))
    where = data.draw(st.sampled_from(["fresh", "operand", "overlapping", "reversed", "wrong"]))
    found = []
    for namespace in (numpy_namespace, LANES):
        memory = np.linspace(-3.0, 4.0, size + 4)
        x = memory[2 : size + 2]
        out = {
            "fresh": np.zeros(size),
            "operand": x,
            "overlapping": memory[2 + shift : size + 2 + shift],
            "reversed": x[::-1],
            "wrong": np.zeros(size + 1),
        }[where]
        given_operands = (x, np.linspace(1.0, 2.0, size))[:count]
        result, told = outcome(getattr(namespace, name), *given_operands, out)
        found.append((result if isinstance(result, str) else result is out, told, memory, out))
    (one, one_told, *one_arrays), (two, two_told, *two_arrays) = found
    assert (two, two_told) == (one, one_told)
    assert same_bits(two_arrays, one_arrays)


def test_what_is_over_before_a_thread_wakes_stays_as_it_is() -> None:
    """The sums and products of a narrow network get no call more."""
    assert len(FUNCTIONS) >= 17
    assert {"exp", "log", "tanh", "pow"} <= set(FUNCTIONS)
    for name in ("add", "multiply", "where", "matmul", "less"):
        assert getattr(LANES, name) is getattr(numpy_namespace, name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_give_the_bits_of_one_lane(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    size = LARGE_ELEMENTS + 12_345
    x, gradient = (rng.normal(0.0, 3.0, size).astype(dtype) for _ in range(2))
    x[::1000], x[7::100_000] = np.inf, np.nan
    given_operands = (x, gradient)[: 2 if "gradient" in name else 1]
    expected = getattr(numpy_namespace, name)(*given_operands)
    assert same_bits([getattr(LANES, name)(*given_operands)], [expected])
    rows = [operand[:LARGE_ELEMENTS].reshape(512, -1).T for operand in given_operands]
    assert not rows[0].flags.c_contiguous
    expected = getattr(numpy_namespace, name)(*rows)
    assert same_bits([getattr(LANES, name)(*rows)], [expected])


@pytest.mark.parametrize("name", KERNELS)
def test_workspace_does_not_depend_on_lanes(name: str) -> None:
    """And stays within 1 MiB, which is what a pass may need beside whole tensors."""
    x = np.linspace(-5.0, 5.0, 1024 * 1024, dtype="float32")
    given_operands = (x, x, x.copy()) if "gradient" in name else (x,)
    sizes = set()
    for namespace in (numpy_namespace, LANES, LANES):
        _, workspace_bytes = Workspaces().call(getattr(namespace, name), given_operands, {})
        sizes.add(workspace_bytes)
    assert len(sizes) == 1
    assert 0 < sizes.pop() <= 2**20


LARGE = np.full(numpy_lanes.LARGE_ELEMENTS + 3, 1e30, dtype="float32")


def test_one_step_takes_no_workspace_on_lanes() -> None:
    LANES.tanh(LARGE)
    _, workspace_bytes = Workspaces().call(LANES.tanh, (LARGE,), {})
    assert workspace_bytes == 0


def test_one_call_warns_once_of_each_kind_and_only_of_what_is_asked() -> None:
    values = np.zeros_like(LARGE)
    values[-5:] = -1.0
    kinds = ["divide by zero", "invalid value"]
    _, told = outcome(LANES.log, values)
    assert told == [f"RuntimeWarning: {kind} encountered in log" for kind in kinds]
    with np.errstate(divide="ignore", invalid="raise"):
        result, told = outcome(LANES.log, values)
    assert (result, told) == ("FloatingPointError: invalid value encountered in log", [])
    with np.errstate(all="ignore"):
        assert outcome(LANES.log, values)[1] == []


def test_what_is_handed_to_a_function_is_handed_over_as_on_one_lane() -> None:
    calls: list[Any] = []
    with np.errstate(over="call", call=lambda *given: calls.append(given)):
        LANES.exp(LARGE)
        numpy_namespace.exp(LARGE)
    assert len(calls) == 2
    assert calls[0] == calls[1]


def test_the_setting_of_the_caller_stays_as_it_is() -> None:
    with np.errstate(over="ignore", under="raise"):
        before = np.geterr()
        LANES.exp(LARGE)
        assert np.geterr() == before


class Meeting:
    """A call in which both lanes are sure to take part."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2)
        self.lanes: list[int] = []

    def __call__(self, lane: int, start: int, stop: int) -> None:
        if start < 2:
            self.both.wait(timeout=20)
        self.lanes.append(lane)


def test_every_part_is_taken_once_and_by_two_threads() -> None:
    meeting, taken = Meeting(), []

    def call(lane: int, start: int, stop: int) -> None:
        meeting(lane, start, stop)
        taken.append((start, threading.get_ident()))

    share(call, [(i, i + 1) for i in range(50)], 2)
    assert sorted(start for start, _ in taken) == list(range(50))
    assert len({thread for _, thread in taken}) == 2


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt, FloatingPointError])
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_any_lane_reaches_the_caller(failing: int, kind: type[BaseException]) -> None:
    meeting = Meeting()

    def call(lane: int, start: int, stop: int) -> None:
        meeting(lane, start, stop)
        if lane == failing:
            raise kind("here")
        time.sleep(1e-3)

    with pytest.raises(kind, match="here"):
        share(call, [(i, i + 1) for i in range(500)], 2)
    assert len(meeting.lanes) < 500
    share(lambda *_: None, [(0, 1), (1, 2)], 2)


@pytest.mark.usefixtures("no_collector")
def test_nothing_of_a_call_is_held_when_it_has_ended_with_or_without_an_error() -> None:
    for is_failing in (False, True):
        x = np.zeros(4)
        gone = weakref.ref(x)

        def call(lane: int, start: int, stop: int, x: Array = x, fails: bool = is_failing) -> None:
            if fails and start == 3:
                raise ValueError("here")
            x[start] += 1.0

        try:
            share(call, [(i, i + 1) for i in range(4)], 2)
        except ValueError:
            assert is_failing
        del call, x
        assert gone() is None


def test_a_helper_that_is_held_up_keeps_nobody_waiting() -> None:
    """One caller has the helper; another does its own work all by itself."""
    release, entered = threading.Event(), threading.Event()

    def held_up(lane: int, start: int, stop: int) -> None:
        if lane:
            entered.set()
            release.wait(timeout=20)
        else:
            entered.wait(timeout=20)

    first = threading.Thread(target=share, args=(held_up, [(0, 1), (1, 2)], 2))
    first.start()
    assert entered.wait(timeout=20)
    lanes = []
    share(lambda lane, *_: lanes.append(lane), [(i, i + 1) for i in range(10)], 2)
    assert lanes == [0] * 10
    release.set()
    first.join(timeout=20)
    assert not first.is_alive()


def test_without_another_thread_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lanes_module, "_helpers", lanes_module._Helpers())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert same_bits([LANES.tanh(LARGE)], [numpy_namespace.tanh(LARGE)])


@pytest.mark.parametrize(
    ("threads", "variables", "cores", "lanes"),
    [
        (None, {}, 8, 2),
        (None, {}, 1, 1),
        (None, {}, None, 1),
        (None, {"OPENBLAS_NUM_THREADS": "1"}, 8, 1),
        (None, {"OMP_NUM_THREADS": "1"}, 8, 1),
        (None, {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}, 8, 2),
        (None, {"OPENBLAS_NUM_THREADS": "many"}, 8, 2),
        (1, {}, 8, 1),
        (2, {"OPENBLAS_NUM_THREADS": "1"}, 8, 2),
        (64, {}, 8, 2),
        (64, {}, 1, 1),
    ],
)
def test_lanes_follow_from_threads_variables_and_cores(
    monkeypatch: pytest.MonkeyPatch,
    threads: int | None,
    variables: dict[str, str],
    cores: int | None,
    lanes: int,
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(lanes_module, "usable_cores", lambda: cores)
    assert lanes_of(threads) == lanes
    backend = NumpyBackend()
    if threads is not None:
        backend.limit_threads(threads)
    assert (backend.namespace is numpy_namespace) == (lanes == 1)


def in_a_process(program: str) -> str:
    """What it prints; nothing may be on its stderr, and it has to end by itself."""
    head = (
        "import threading, os\nimport numpy as np\n"
        "from ckptcli.backends.numpy_lanes import on_lanes\n"
        "xp = on_lanes(2)\nlarge = np.ones((1024, 1024))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_threads_are_made_with_the_first_large_call_and_let_the_process_end() -> None:
    program = (
        "xp.exp(large[:8]); xp.sigmoid(large[:8]); print(threading.active_count())\n"
        "xp.sigmoid(large); print(threading.active_count())\n"
    )
    assert in_a_process(program).split() == ["1", "2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is not copied here")
def test_a_child_process_has_helpers_of_its_own() -> None:
    program = (
        "expected = xp.sigmoid(large)\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "pid = os.fork()\n"
        "ok = bool((xp.sigmoid(large) == expected).all()) and threading.active_count() == 2\n"
        "if pid == 0: os._exit(0 if ok else 7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), ok)\n"
    )
    assert in_a_process(program).split() == ["0", "True"]
