"""A measurement leaves the garbage collector as it was: on, with nothing set aside for good."""

from __future__ import annotations

import gc

import pytest

from ckptcli import Plan, profile
from ckptcli.measure.rounds import LEAST_OF_A_CALLER, caller_has_frozen
from ckptcli.workloads.silu import SiluWorkload


@pytest.mark.parametrize("is_enabled", [True, False])
def test_what_is_set_aside_while_measuring_is_given_back(is_enabled: bool) -> None:
    """Objects that stayed set aside would never be collected by a program that calls `profile`."""
    gc.unfreeze()
    caller_has_frozen.cache_clear()
    try:
        if not is_enabled:
            gc.disable()
        profile(SiluWorkload(1, 2), plan=Plan(reps=1, warmup=0))
        assert gc.isenabled() == is_enabled
        assert gc.get_freeze_count() < LEAST_OF_A_CALLER
    finally:
        gc.enable()
        gc.freeze()
        caller_has_frozen.cache_clear()
