"""Whose fault it is that loss or gradients are not ckpt's: who stands with whom.

There are up to four witnesses of a row: ckpt's own pass, the same engine without a checkpoint, the
exact value, and a finite difference of the loss. Where the engine without a checkpoint agrees with
ckpt and the row does not, the checkpoint is all that differs: it is what changed the gradient.

Invariant: a witness is named only where it can tell the two sides apart: it is `NEARER` times as
far from the one as from the other. The exact value of a program that truncates is no nearer than
that leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ckptcli.measure import OURS
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Outcome, Row

NEARER = 10.0
"""How many times as far from one side as from the other a witness has to be."""

UNDECIDED = "one of both is wrong, or the program is too ill-conditioned for its dtype"


def disagreement(row: Row, record: RunRecord) -> str | None:
    """A sentence where loss or gradients are further from ckpt's than the tolerance."""
    known = row.agreement
    if known is None or known.agrees or known.beside != OURS:
        return None
    return (
        f"{row.name}: differs from ckpt by {known.loss_relative:.2g} in the loss and "
        f"{known.gradient_relative:.2g} in a gradient, more than {known.tolerance:g}: "
        f"{why_not_ours(row, *others_of(row, record))}"
    )


def others_of(row: Row, record: RunRecord) -> tuple[Row | None, Outcome | None]:
    """The same engine without a checkpoint, None for that row itself or where it was not run; and
    what ckpt computed.
    """
    base = record.base_of(row)
    own = (r.outcome for r in record.rows if r.engine == OURS and r.outcome is not None)
    return base if base is not None and base.engine == row.engine else None, next(own, None)


def why_not_ours(row: Row, plain: Row | None, own: Outcome | None) -> str:
    """What the evidence says of a row of another engine that does not agree with ckpt."""
    if plain is None or plain.agreement is None or row.plain_agreement is None:
        return _between(row, own)
    if plain.agreement.agrees and not row.plain_agreement.agrees:
        agreeing = _joined(["ckpt", *_standing_with(plain.outcome, row.outcome)])
        return f"the checkpoint changed it: `{plain.name}` agrees with {agreeing}"
    if row.plain_agreement.agrees:
        return f"not by the checkpoint, as `{plain.name}` differs as much; {_between(row, own)}"
    return (
        f"the checkpoint changed it, and `{plain.name}` differs from ckpt as well; "
        f"{_between(row, own)}"
    )


def _between(row: Row, own: Outcome | None) -> str:
    """With whom the exact value and the finite difference stand, of the row and ckpt."""
    sides = (
        (own, row.outcome, "ckpt"),
        (row.outcome, own, f"`{row.name}`, so that ckpt is wrong"),
    )
    for near, far, whom in sides:
        standing = [*_standing_with(near, far)]
        if standing:
            verb = "stands" if len(standing) == 1 else "stand"
            return f"{_joined(standing)} {verb} with {whom}"
    return UNDECIDED


def _standing_with(near: Outcome | None, far: Outcome | None) -> Iterator[str]:
    """The witnesses that are `NEARER` times as near to the one gradient as to the other."""
    if near is None or far is None or near.gradient is None or far.gradient is None:
        return
    exact = far.exact or near.exact
    witnesses = {
        "the exact value": None if exact is None else exact[1],
        "the finite difference": far.finite_difference or near.finite_difference,
    }
    for name, value in witnesses.items():
        if value is not None and _is_nearer(near.gradient, far.gradient, value):
            yield name


def _is_nearer(near: float, far: float, value: float) -> bool:
    """Also where the far one is not a number, which is near to nothing."""
    apart = abs(far - value)
    return NEARER * abs(near - value) <= apart or (math.isnan(apart) and math.isfinite(near))


def _joined(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
