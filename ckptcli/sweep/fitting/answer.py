"""What is known of the largest size that fits, as frozen data; as JSON, schema `ckpt.fits/1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.sweep.laws.polynomial import Polynomial
from ckptcli.sweep.laws.power import Prediction

BEST_PLAN = "best plan"
"""What the row of the planner is called."""

HOWS = ("measured", "by shapes", "planned", "by law")
"""How an answer is known, the surest first; see `Fit.how`."""


@dataclass(frozen=True, slots=True)
class Peak:
    """What one pass took, bytes: of the ledger, and with the workspace of kernels.

    Attributes:
        has_values: whether the pass computed anything; one of shapes has no workspace of kernels.
        is_least: of a plan that does not fit: whether no plan takes less.
    """

    ledger_bytes: int
    peak_bytes: int
    has_values: bool = True
    is_least: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A size that gives no peak, and why: a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for one strategy.

    Attributes:
        largest: the largest size that fits; 0 where none does, None where neither a law nor the
            machine tells.
        peak_bytes, next_peak_bytes: there and at the next size; None where not known.
        proven: whether both were measured, or accounted for by shapes, and no plan takes less.
        how: `measured`; `by shapes`, where nothing was computed; `planned`, where the plan was
            measured and the next size has none that was found; `by law`. "" of no answer.
        law: the polynomial of the ledger's peak, of the best plan that of the least that a plan
            takes, the workspace of kernels that it knows included; None where there is none.
        measured_up_to: the largest size that was found to fit; 0 for none.
        looked_at: how many sizes were measured after the ladder.
        why: what kept the answer from being proven, or from being there, a sentence.
        word: of the best plan, what `-s` takes for it at `largest`.
        time: what a pass takes there; None where no times were taken.
    """

    strategy: str
    largest: int | None
    peak_bytes: int | None
    next_peak_bytes: int | None
    proven: bool
    how: str = ""
    law: Polynomial | None = None
    measured_up_to: int = 0
    looked_at: int = 0
    why: str = ""
    word: str | None = None
    time: Prediction | None = None


def fits_object(over: str, step: int, limit_bytes: int, fits: Sequence[Fit]) -> dict[str, object]:
    """The answer as plain data, schema `ckpt.fits/1`."""
    return {
        "schema": "ckpt.fits/1",
        "over": over,
        "multiple_of": step,
        "device_memory_bytes": limit_bytes,
        "strategies": [_object(found) for found in fits],
    }


def _object(found: Fit) -> dict[str, object]:
    time = found.time
    return {
        "strategy": found.strategy,
        "largest": found.largest,
        "peak_bytes": found.peak_bytes,
        "next_peak_bytes": found.next_peak_bytes,
        "proven": found.proven,
        "time_s": None if time is None else time.time_s,
        "time_low_s": None if time is None else time.low_s,
        "time_high_s": None if time is None else time.high_s,
        "time_extrapolated": None if time is None else time.is_extrapolated,
        "how": found.how or None,
        "measured_up_to": found.measured_up_to,
        "looked_at": found.looked_at,
        "why": found.why or None,
        "plan": found.word,
        "law": None if found.law is None else found.law.text,
    }
