"""The rounds that a plan of a module or of a function is timed in, beside `none`."""

from __future__ import annotations

from ckptcli.measure.rounds import Plan

ROUNDS = 9
"""As many as an exact 95 % interval of a median takes, with some to spare."""


def plan_rounds(seed: int) -> Plan:
    """The same for both; the seed decides which of the two goes first."""
    return Plan(reps=ROUNDS, seed=seed)
