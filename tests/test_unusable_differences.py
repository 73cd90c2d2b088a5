"""A finite difference whose two steps do not agree concludes nothing, whatever the gradient is.

The loss has a kink just above the parameter, where its derivative jumps from 0 to 1. A step h gives
(6h - 7 KINK) / 12h there, so that both steps lie near a half, and far further apart than the bound
on any machine.
"""

from __future__ import annotations

import math

from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.verify.check import Check, check
from ckptcli.verify.differences import STEP, UNUSABLE
from tests.program_kit import Opener

PROGRAM = """
def make(device):
    x = device.tensor([1.0], "float64").require_grad()
    return lambda: (x - {kink}).{op}()
"""


def checked(opened: Opener, kink: float, op: str = "relu") -> Check:
    workload = opened(PROGRAM.format(kink=1.0 + kink, op=op))
    return check(workload, parse_strategy("none"), workload)


def test_two_steps_beside_a_kink_are_unusable_and_fail_nothing(opened: Opener) -> None:
    kink = STEP / 100.0
    found = checked(opened, kink)
    (difference,) = found.differences
    coarse, fine = ((6.0 * h - 7.0 * kink) / (12.0 * h) for h in (STEP, STEP / 2.0))
    assert difference.gradient == 0.0
    assert math.isclose(difference.difference, fine, rel_tol=1e-6)
    assert math.isclose(difference.scatter, (coarse - fine) / coarse, rel_tol=1e-6)
    assert difference.scatter > 10.0 * UNUSABLE
    assert not difference.agrees
    assert not difference.is_usable
    assert found.passed


def test_a_kink_closer_than_the_steps_can_tell_is_a_wrong_gradient(opened: Opener) -> None:
    """Both steps say a half, and so disagree with a derivative of 0: the rule's other side."""
    found = checked(opened, STEP * 1e-5)
    (difference,) = found.differences
    assert difference.is_usable
    assert not difference.agrees
    assert not found.passed
