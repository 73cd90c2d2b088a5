"""What was found of a strategy of a JAX function of the user's own: `ckpt.check-function/1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ckptcli.measure.row import Agreement

SCHEMA = "ckpt.check-function/1"


@dataclass(frozen=True, slots=True)
class Along:
    """The gradient along a direction, in float64, beside a finite difference of the loss.

    Attributes:
        gradient, difference: both derivatives.
        scatter: how far the steps of the difference lie apart, as a share.
        parameters: those that the direction moves.
        reason: why nothing can be concluded from it; None where something can.
        agrees: whether both agree as far as the difference can tell.
        apart: how far they are apart, as a share.
    """

    gradient: float
    difference: float
    scatter: float
    parameters: Sequence[str]
    reason: str | None
    agrees: bool
    apart: float


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A value that came back otherwise.

    Attributes:
        primitive: what made it.
        source: the line as JAX names it.
        line, function: the user's own line that led to it.
        region: the how manieth checkpoint it is in, from 1.
        element: of the value, where it differs first.
        forward, again: that element in both passes.
        ulp: how many spacings of the dtype lie between them; None where that says nothing.
        apart: the largest difference of any element, as a share of the largest one.
    """

    primitive: str
    source: str
    line: str
    function: str
    region: int
    element: Sequence[int]
    forward: float
    again: float
    ulp: float | None
    apart: float


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was found in the compiled program, of which few values at a time can be seen.

    Attributes:
        programs: how many were compiled to look.
        first: the first value that is recomputed otherwise; None if none was seen.
        farthest: the one that lies farthest apart of those looked at after it.
        is_undisturbed: whether the program that shows the first has the gradient that is in
            question, bit for bit.
    """

    programs: int
    first: Recomputed | None
    farthest: Recomputed | None
    is_undisturbed: bool


@dataclass(frozen=True, slots=True)
class FunctionCheck:
    """One strategy.

    Attributes:
        strategy: its name.
        reason: why there is nothing to check; None if there is.
        gradients: how many parameters have one.
        agreement: compiled, beside `none` compiled.
        op_by_op: the same without the compiler, beside `none` compiled.
        wrong_gradients: a sentence for each gradient that is further off than the tolerance.
        not_compared: parameters whose gradient is rounding alone.
        not_finite: parameters whose gradient has nan or infinity.
        sites: how many equations are inside of checkpoints.
        compared: how many of their values could be seen in both passes, op by op.
        wrong_values: those that came back otherwise op by op.
        compiled: the search in the compiled program; None where there was nothing to find.
        differences: the gradient against finite differences.
        why_no_differences: why there are none; None if there are.
    """

    strategy: str
    reason: str | None = None
    gradients: int = 0
    agreement: Agreement | None = None
    op_by_op: Agreement | None = None
    wrong_gradients: Sequence[str] = ()
    not_compared: Sequence[str] = ()
    not_finite: Sequence[str] = ()
    sites: int = 0
    compared: int = 0
    wrong_values: Sequence[Recomputed] = ()
    compiled: Compiled | None = None
    differences: Sequence[Along] = ()
    why_no_differences: str | None = None

    @property
    def usable(self) -> list[Along]:
        """The directions from which something can be concluded."""
        return [along for along in self.differences if along.reason is None]

    @property
    def passed(self) -> bool | None:
        """Whether nothing was found; None where there is nothing to check."""
        if self.agreement is None or self.op_by_op is None:
            return None
        agrees = self.agreement.agrees and self.op_by_op.agrees
        return agrees and not self.wrong_values and all(along.agrees for along in self.usable)


def check_object(title: str, checks: Sequence[FunctionCheck]) -> dict[str, Any]:
    """The checks as plain data, numbers that JSON does not have left as they are."""
    return {
        "schema": SCHEMA,
        "function": title,
        "checks": [
            {
                **asdict(found),
                "usable_directions": len(found.usable),
                "unusable_directions": len(found.differences) - len(found.usable),
                "passed": found.passed,
            }
            for found in checks
        ],
    }
