"""One word on what a strategy did to a program that is compiled whole: on what that takes.

The residuals are counted in the program that was traced. What the compiler makes of it is free to
hold more: to take the one copy for what was to be computed again, or to compute it long before it
is needed. So the word is about the peak that was measured or planned, and residuals that fall where
that does not are a reason, not an effect.

Invariant: as `judge`: `worse` before `effective` before `no effect`; `held only` there is none.
"""

from __future__ import annotations

from collections import Counter

from ckptcli import units
from ckptcli.measure.compiled import Compiled, named
from ckptcli.measure.memory import Memory
from ckptcli.measure.row import Judgement, Row

TOLERANCE = 0.02
"""A memory figure within this share of the reference's counts as unchanged."""


def judge_compiled(row: Row, base: Row) -> Judgement | None:
    """The word on a compiled row against one; None where one of the peaks is not known."""
    now, before = row.memory, base.memory
    if row.compiled is None or now is None or before is None:
        return None
    peak, plain = now.compiled_peak_bytes, before.compiled_peak_bytes
    if peak is None or plain is None:
        return None
    change = f"the compiled program takes {units.change(peak, plain)}"
    if peak > plain * (1.0 + TOLERANCE):
        return Judgement("worse", f"{change}{_although(now, before, row.compiled)}")
    if peak < plain * (1.0 - TOLERANCE):
        return Judgement("effective", f"peak {units.change(peak, plain)}")
    return Judgement("no effect", f"{change}{_although(now, before, row.compiled)}")


def _although(now: Memory, before: Memory, compiled: Compiled) -> str:
    """What the residuals did, and why that is not what the program takes."""
    if now.saved_bytes >= before.saved_bytes * (1.0 - TOLERANCE):
        return ""
    held = units.change(now.saved_bytes, before.saved_bytes)
    return f", although its residuals, as traced, are {held}: {_why(compiled)}"


def _why(compiled: Compiled) -> str:
    """What the compiler did to what the policy has computed again."""
    merged, asked = compiled.merged_by_op, Counter(compiled.asked_by_op or {})
    if not asked:
        return "the compiler orders the program and its buffers itself"
    if not merged:
        return (
            f"all of it is computed again ({named(asked)}), but a region comes back whole, and the "
            "compiler, which orders the program, may have it do so long before it is needed"
        )
    return (
        f"of {named(asked)} to be computed again the compiler merged {named(merged)} with those of "
        "the forward pass, whose values are then held"
    )
