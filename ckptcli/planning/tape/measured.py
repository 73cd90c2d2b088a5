"""What a plan took when it was run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """One plan, measured.

    Attributes:
        peak_bytes: above parameters and input, workspace included.
        ledger_bytes: without.
        time_s: the median of forward and backward.
        none_time_s: likewise under `none`, the rounds interleaved; None where that does not fit.
        within_budget: whether the peak is within the budget; true without one.
        gradients_equal: whether every bit of the gradients is that of `none`; None without it.
        host_bytes: the most that was on the host.
    """

    peak_bytes: int
    ledger_bytes: int
    time_s: float
    none_time_s: float | None
    within_budget: bool
    gradients_equal: bool | None
    host_bytes: int = 0
