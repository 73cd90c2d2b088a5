"""A measurement leaves the garbage collector as it was: on, with nothing set aside for good."""

from __future__ import annotations

import gc

import pytest

from ckptcli import Plan, profile
from ckptcli.workloads.silu import SiluWorkload


@pytest.mark.parametrize("is_enabled", [True, False])
def test_what_is_set_aside_while_measuring_is_given_back(is_enabled: bool) -> None:
    """Objects that stayed set aside would never be collected by a program that calls `profile`."""
    gc.unfreeze()
    before = gc.get_freeze_count()
    try:
        if not is_enabled:
            gc.disable()
        profile(SiluWorkload(1, 2), plan=Plan(reps=1, warmup=0))
        assert (gc.isenabled(), gc.get_freeze_count()) == (is_enabled, before)
    finally:
        gc.enable()
        gc.freeze()
