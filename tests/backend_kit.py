"""What the tests of several libraries share: the devices that this machine has, and outcomes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, device
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import Event, Recorder
from ckptcli.workloads.base import ForwardResult
from tests.gradient_cases import CASES
from tests.helpers import STRATEGIES, backward, gradient, leaf, log_lines, same_bits

NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
NEEDS_JAX = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
BACKENDS = ["numpy", pytest.param("torch", marks=[NEEDS_TORCH, pytest.mark.slow])]
"""The libraries that compute on the processor, as parameters; PyTorch takes seconds to load."""
ENGINE_MARKS = {
    "torch": NEEDS_TORCH,
    **dict.fromkeys(("jax", "jax-eager", "jax-scan"), NEEDS_JAX),
}
ENGINES = tuple(ENGINE_MARKS)
INSTALLED_ENGINES = [pytest.param(name, marks=mark) for name, mark in ENGINE_MARKS.items()]
"""Every engine as a parameter; a test of one whose library is missing is skipped."""

NAMED_ENGINE = re.compile(r"--engine[ =](\S+)")


def skipped_without_its_engines(commands: Iterable[str]) -> list[Any]:
    """The command lines as parameters; one that names an engine needs that engine's library, and
    is long where JAX compiles.
    """
    return [pytest.param(command, marks=_marks_of(command)) for command in commands]


def _marks_of(command: str) -> list[Any]:
    names = NAMED_ENGINE.findall(command)
    needed = [ENGINE_MARKS[name] for name in names if name in ENGINE_MARKS]
    compiles = any(name.startswith("jax") for name in names)
    return [*needed, pytest.mark.long] if compiles else needed


def watched_on(base: Device, strategy: str) -> tuple[Device, Recorder]:
    """`base` under a strategy, node ids from 0, and what it did so far."""
    recorder = Recorder()
    dev = base.autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(recorder), recorder


def torch_device() -> Device:
    """PyTorch on the processor."""
    return device("torch", "cpu")


@cache
def _numpy_outcome(name: str, index: int, strategy: str) -> tuple[list[str], list[Any]]:
    return op_outcome(name, index, device(), strategy)


def numpy_outcome(name: str, index: int, strategy: str) -> tuple[list[str], list[Any]]:
    """`op_outcome` on NumPy, computed once."""
    return _numpy_outcome(name, index, strategy)


def op_outcome(name: str, index: int, base: Device, strategy: str) -> tuple[list[str], list[Any]]:
    """The log, and value and gradients of the sum of squares of a case's output."""
    case = CASES[name][index]
    dev, recorder = watched_on(base, strategy)
    leaves = [leaf(dev, array) for array in case.operands()]
    out = case.function(*leaves)
    value = out.numpy().copy()
    gradients = backward((out * out).sum())
    return log_lines(recorder.events), [value, *(gradient(gradients, x) for x in leaves)]


def check_outcomes_of_numpy(name: str, base: Callable[[], Device]) -> None:
    """Every case of an op has NumPy's log and, up to rounding, its value and gradients.

    Strategies have the same bits.
    """
    for index in range(len(CASES[name])):
        outcomes = [op_outcome(name, index, base(), strategy) for strategy in STRATEGIES]
        assert same_bits(outcomes[0][1], outcomes[1][1])
        for strategy, (log, arrays) in zip(STRATEGIES, outcomes):
            numpy_log, numpy_arrays = numpy_outcome(name, index, strategy)
            assert log == numpy_log
            for ours, theirs in zip(arrays, numpy_arrays, strict=True):
                scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)


def pass_outcome(
    base: Device, strategy: str, load: Callable[[Device], Any]
) -> tuple[list[Event], dict[str, Any]]:
    """The events and the gradients of a program, warnings about constants left aside."""
    dev, recorder = watched_on(base, strategy)
    result: ForwardResult = load(dev).forward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradients = backward(result.root)
    reached = {
        name: gradient(gradients, x)
        for name, x in result.parameters.items()
        if gradients.wrt(x) is not None
    }
    return recorder.events, reached
