"""A chain of equal steps, and slots that a state fits in (Griewank and Walther, 2000).

Step i of 1..n makes state x_i of x_{i-1}. An *advance* evaluates a step and forgets how; *reverse*
of step i needs x_{i-1} live and evaluates it once more. A live state is no slot's; one is kept in a
slot, of which x_0 takes one, or on disk, where writing and reading cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckptcli.planning.problems.base import Number, reads
from ckptcli.planning.problems.fields import Fields
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class StepsProblem:
    """A chain of equal steps.

    Attributes:
        n: how many.
        disk: how many states fit on disk.
        write_cost, read_cost: of one state, in advances.
    """

    n: int
    disk: int = 0
    write_cost: Number = 0
    read_cost: Number = 0

    kind: ClassVar[str] = "steps"
    unit: ClassVar[str] = "slot"

    @property
    def base_cost(self) -> int:
        """No advance; the n evaluations of the reversals are in every plan and never counted."""
        return 0

    @property
    def title(self) -> str:
        """`10 steps`."""
        return count(self.n, "step")


@reads("steps")
def read_steps(fields: Fields) -> StepsProblem:
    """`n`, at least 1."""
    n = fields.whole("n")
    if not n:
        fields.fail("`n` is 0", "a chain has at least one step")
    return StepsProblem(n)
