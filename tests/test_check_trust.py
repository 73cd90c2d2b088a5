"""A small part of `benchmarks/gradient_check.py`: no false alarm, and no fault that is missed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gradient_check")


def test_no_right_gradient_of_a_network_with_kinks_is_called_wrong(trust: Any) -> None:
    alarms = trust.false_alarms(30)
    assert alarms.false == []
    assert 0.6 * alarms.directions < alarms.usable < alarms.directions


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_planted_fault_that_a_usable_direction_concerns_is_found(trust: Any) -> None:
    faults = trust.planted_faults(30)
    assert faults.missed == []
    assert faults.found >= 25
