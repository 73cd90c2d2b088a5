"""Which warnings become notes of a record, and that the others are not lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ckptcli import Device, Plan, profile
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.profiling.engine_warnings import engine_warnings
from ckptcli.profiling.log_pass import log_pass
from ckptcli.workloads.silu import SiluNetwork, SiluWorkload


class Deprecated(SiluWorkload):
    """A program that warns of something of its own whenever it is loaded."""

    def load(self, device: Device) -> SiluNetwork:
        warnings.warn("mine is old", RuntimeWarning, stacklevel=2)
        return super().load(device)


def test_the_engines_are_noted_once_and_in_order() -> None:
    with engine_warnings() as notes:
        for text in ("first", "second", "first"):
            warnings.warn(text, UntrackedBackwardWarning, stacklevel=2)
    assert notes == ["first", "second"]


def test_another_is_shown_though_the_block_fails() -> None:
    def failing() -> None:
        with engine_warnings():
            warnings.warn("mine is old", RuntimeWarning, stacklevel=2)
            raise ValueError("not me")

    with pytest.warns(RuntimeWarning, match="mine is old"), pytest.raises(ValueError, match="me"):
        failing()


@pytest.mark.parametrize(
    "notes_of",
    [
        lambda workload: profile(workload, plan=Plan(1, 0)).warnings,
        lambda workload: log_pass(workload, parse_strategy("none"), None).warnings,
    ],
    ids=["profile", "log"],
)
def test_a_programs_own_is_no_note_of_a_pass(notes_of: Callable[[Any], tuple[str, ...]]) -> None:
    with pytest.warns(RuntimeWarning, match="mine is old"):
        notes = notes_of(Deprecated(1, 4))
    assert not [note for note in notes if "mine" in note]
