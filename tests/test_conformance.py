"""Burn's own figures: 200 random graphs under both strategies, and the seed's two logs."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import DATA, STRATEGIES, backward, gradient, log_lines, watched
from tests.recorded_programs import RECORDED, programs

NAMES = [f"{case['seed']}-{case['strategy']}" for case in RECORDED]


@cache
def outcome(index: int) -> tuple[list[str], dict[str, Any], bool]:
    """Log, gradient of each leaf that has one, and whether backward() warned."""
    dev, recorder = watched(RECORDED[index]["strategy"])
    result = programs()[index].load(dev).forward()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients = backward(result.root)
    reached = {
        name: gradient(gradients, leaf)
        for name, leaf in result.parameters.items()
        if gradients.wrt(leaf) is not None
    }
    assert all(issubclass(warning.category, UntrackedBackwardWarning) for warning in caught)
    return log_lines(recorder.events), reached, bool(caught)


def test_there_are_200_graphs_under_each_strategy() -> None:
    strategies = [case.strategy for case in programs()]
    assert {name: strategies.count(name) for name in STRATEGIES} == {"none": 200, "balanced": 200}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("index", range(len(RECORDED)), ids=NAMES)
def test_log_and_gradients_are_those_that_burn_recorded(index: int) -> None:
    log, gradients, _ = outcome(index)
    recorded = RECORDED[index]
    assert log == recorded["log"]
    assert gradients.keys() == recorded["grads"].keys()
    for name, expected in recorded["grads"].items():
        np.testing.assert_allclose(gradients[name].ravel(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_roots_computed_from_constants_alone_warn() -> None:
    assert sum(outcome(index)[2] for index in range(len(RECORDED))) == 74


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_silu_log_is_the_seeds(strategy: str) -> None:
    dev, recorder = watched(strategy)
    backward(SiluWorkload(layers=2, n=64).load(dev).forward().root)
    golden = (DATA / f"silu_2x64_{strategy}_full.log").read_text()
    assert "".join(f"{line}\n" for line in log_lines(recorder.events)) == golden
