"""What was found out of strategies that were checked, whatever the program and the library.

Invariant: one rule says whether a strategy passed. Gradients are judged by how far they are from
those that they have to be where libraries sum in other orders, by their bits elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ckptcli.measure import OURS
from ckptcli.measure.codec import with_finite_numbers, written
from ckptcli.measure.difference import BesideTheory, Difference, DirectionalDifference
from ckptcli.measure.fields import derived
from ckptcli.measure.function_check import Compiled
from ckptcli.measure.gauge import GaugeChange
from ckptcli.measure.module_check import Moved, Place
from ckptcli.measure.row import Agreement
from ckptcli.measure.wrong_values import OpValue, WrongValue
from ckptcli.options.subjects import WORKLOAD

SCHEMA = "ckpt.check/1"


@dataclass(frozen=True, slots=True)
class WrongGradient:
    """A gradient that is not what it has to be.

    Attributes:
        parameter: Whose.
        first, worst: The first element that differs, and the one that moved most.
        relative: The largest distance, as a share of the largest element.
        block: The block of a module that the parameter is in; "" where it is in none.
    """

    parameter: str
    first: Difference
    worst: Difference
    relative: float
    block: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One strategy checked in one engine: what is known of it is there, what is not is null or
    empty.

    Attributes:
        strategy: Its name, as on the command line.
        engine: What ran it; `ckpt` is this program's own engine.
        reason: Why there is nothing to check; null where it was checked.
        failed: Whether that is since the program fails under it.
        counterpart: In what the strategy is another thing in this library; "" where it is not.
        gradients: How many parameters' gradients were compared with those of `none`.
        by_bits: Whether bit for bit: then `gradients_apart` has each that has other bits.
        gradients_apart: Those that differ, or lie further off than `spread` or the tolerance.
        agreement: Loss and gradients beside ckpt's own; of a function, which ckpt has not, beside
            `none`.
        plain_agreement: Beside `none` of the same engine; null for that one itself.
        op_by_op: Without the compiler, beside `none` compiled.
        theory: The gradient beside the exact one; null where that is not known.
        spread: How far two passes of `none` lie apart, relative to each gradient's largest element;
            null where they are the same.
        not_finite: The parameters whose gradient holds nan or infinity. `none`'s may do so too: a
            strategy that keeps it passes.
        not_compared: The parameters whose gradient is rounding alone.
        unused: The parameters that no gradient reaches, under `none` either.
        differences: The gradient in float64 against finite differences of the loss.
        why_no_differences: Why there are none; null if there are, or are never.
        has_float64: Whether the device has the dtype that they need; where not, they are taken of
            the same program in NumPy.
        compared: How many values that were computed again were held against the forward pass's;
            null where the engine does not tell them.
        same_bits: How many of them came back with every bit; null where runs differ anyway.
        wrong_values: Those that did not, or lie further off than the tolerance.
        checkpoints: How many checkpoints the pass of a module made.
        sites: How many equations of a function are inside of checkpoints.
        other_ops: Ops of recomputations that the forward did not have.
        compiled: The search in a compiled program; null where there was nothing to find.
        gauges: How each decomposition that is not the same differs, in the order of recomputation.
        draws: How many random draws the pass took from the stream, `none`'s behind it.
        own_draws: Ops inside checkpoints that draw from a generator of the user's.
        state: What moves in a module.
        untold: What an engine does not tell -> why.
        finding: What the evidence says of gradients that are not ckpt's, or of those that a module
            loses; null where there are none.
    """

    strategy: str
    engine: str = OURS
    reason: str | None = None
    failed: bool = False
    counterpart: str = ""
    gradients: int = 0
    by_bits: bool = False
    gradients_apart: Sequence[WrongGradient] = ()
    agreement: Agreement | None = None
    plain_agreement: Agreement | None = None
    op_by_op: Agreement | None = None
    theory: BesideTheory | None = None
    spread: float | None = None
    not_finite: Sequence[str] = ()
    not_compared: Sequence[str] = ()
    unused: Sequence[str] = ()
    differences: Sequence[DirectionalDifference] = ()
    why_no_differences: str | None = None
    has_float64: bool = True
    compared: int | None = None
    same_bits: int | None = None
    wrong_values: Sequence[WrongValue] = ()
    checkpoints: int | None = None
    sites: int | None = None
    other_ops: Sequence[Place] = ()
    compiled: Compiled | None = None
    gauges: Sequence[GaugeChange] = ()
    draws: tuple[int, int] | None = None
    own_draws: Sequence[Place] = ()
    state: Sequence[Moved] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    finding: str | None = None

    @property
    def agreements(self) -> list[Agreement]:
        """Each that is known, once."""
        ours = None if self.agreement is self.plain_agreement else self.agreement
        known = (self.plain_agreement, ours, self.op_by_op)
        return [found for found in known if found is not None]

    @property
    @derived
    def wrong_gradients(self) -> Sequence[tuple[str, Difference]]:
        """Parameter and the element that moved most, of each in `gradients_apart`."""
        return tuple((wrong.parameter, wrong.worst) for wrong in self.gradients_apart)

    @property
    @derived
    def worst_gradient(self) -> WrongGradient | None:
        """The one that lies farthest from what it has to be."""
        return max(self.gradients_apart, key=lambda wrong: wrong.relative, default=None)

    @property
    @derived
    def wrong_blocks(self) -> Sequence[Sequence[str]]:
        """The blocks of a module with a value that came back otherwise."""
        wrong = [value.place for value in self.wrong_values if isinstance(value, OpValue)]
        return list(dict.fromkeys(tuple(place.block) for place in wrong))

    @property
    @derived
    def usable_directions(self) -> int:
        """How many finite differences something can be concluded from."""
        return sum(direction.is_usable for direction in self.differences)

    @property
    @derived
    def unusable_directions(self) -> int:
        """How many finite differences were taken in vain."""
        return len(self.differences) - self.usable_directions

    @property
    @derived
    def passed(self) -> bool | None:
        """Whether nothing speaks against the strategy; null where nothing was checked."""
        if self.reason is not None:
            return None
        return not (
            self._is_gradient_wrong
            or self.wrong_values
            or (self.draws is not None and self.draws[0] != self.draws[1])
            or any(found.is_usable and not found.agrees for found in self.differences)
        )

    @property
    def _is_gradient_wrong(self) -> bool:
        if self.theory is not None and not self.theory.agrees:
            return True
        if self.agreements:
            return any(not found.agrees for found in self.agreements)
        return bool(self.gradients_apart)

    @property
    def is_decided(self) -> bool:
        """Whether it was checked, and where finite differences belong to that, one is usable."""
        belong = bool(self.differences) or self.why_no_differences is not None
        return self.reason is None and (self.usable_directions > 0 or not belong)


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """The strategies of one program.

    Attributes:
        title: The program in words.
        checks: Those of ckpt's engine first.
        kind: One of `SUBJECTS`.
        point: The value of each option that has several.
    """

    title: str
    checks: Sequence[Check]
    kind: str = WORKLOAD
    point: Mapping[str, float] = field(default_factory=dict)

    def name_of(self, check: Check) -> str:
        """The strategy, with its engine where it is not the first one's."""
        if check.engine == self.checks[0].engine:
            return check.strategy
        return f"{check.engine} {check.strategy}"


def check_object(program: CheckedProgram) -> dict[str, Any]:
    """The checks as plain data, null for each number that JSON does not have."""
    warnings: list[str] = []
    whole = {"schema": SCHEMA, "workload": program.title, program.kind: program.title}
    where = {"point": dict(program.point)} if program.point else {}
    checks = with_finite_numbers(written(program.checks), "checks", warnings)
    return {**whole, **where, "checks": checks, "warnings": warnings}
