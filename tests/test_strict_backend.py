"""Every op on a library with nothing but the array API standard: logs and gradients are NumPy's.

What differs is the last bits: kernels are composed otherwise there.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, device
from ckptcli.backends import numpy_namespace
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import Recorder
from tests.gradient_cases import CASES
from tests.helpers import STRATEGIES, backward, gradient, leaf, log_lines
from tests.recorded_programs import RECORDED, programs
from tests.strict_backend import StrictNamespace, strict_device


def watched_on(base: Device, strategy: str) -> tuple[Device, Recorder]:
    recorder = Recorder()
    dev = base.autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(recorder), recorder


def test_both_backends_supply_the_same_functions() -> None:
    strict = StrictNamespace()
    ours = {
        name
        for name, value in vars(numpy_namespace).items()
        if callable(value) and not name.startswith("_") and not inspect.isclass(value)
    }
    assert {
        name for name in ours - {"Any", "AnyArray", "NDArray", "cache"} if not hasattr(strict, name)
    } == set()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("index", range(len(RECORDED)))
def test_log_and_gradients_are_those_that_burn_recorded(index: int) -> None:
    recorded = RECORDED[index]
    dev, recorder = watched_on(strict_device(), recorded["strategy"])
    result = programs()[index].load(dev).forward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradients = backward(result.root)
    assert log_lines(recorder.events) == recorded["log"]
    for name, expected in recorded["grads"].items():
        actual = gradient(gradients, result.parameters[name])
        np.testing.assert_allclose(actual.ravel(), expected, rtol=1e-12, atol=1e-15)


def outcome(name: str, index: int, base: Device, strategy: str) -> tuple[list[str], list[Any]]:
    """The log and the gradients of the sum of squares of a case's output."""
    case = CASES[name][index]
    dev, recorder = watched_on(base, strategy)
    leaves = [leaf(dev, array) for array in case.operands()]
    out = case.function(*leaves)
    gradients = backward((out * out).sum())
    return log_lines(recorder.events), [gradient(gradients, x) for x in leaves]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", CASES)
def test_an_op_has_numpys_log_and_gradients(name: str) -> None:
    for index in range(len(CASES[name])):
        for strategy in STRATEGIES:
            log, gradients = outcome(name, index, strict_device(), strategy)
            numpy_log, numpy_gradients = outcome(name, index, device(), strategy)
            assert log == numpy_log
            for ours, theirs in zip(gradients, numpy_gradients, strict=True):
                scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)
