"""Items that are kept or computed again, each by itself: PyTorch's `activation_memory_budget`.

An item that is not kept costs its run time once more. The model ignores that one item may be made
of another, and where the peak is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckptcli.planning.problems.base import Number, reads
from ckptcli.planning.problems.fields import Fields
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class KnapsackProblem:
    """Items: the memory that keeping each takes, and the run time that computing it again takes."""

    memory: tuple[int, ...]
    runtime: tuple[Number, ...]

    kind: ClassVar[str] = "knapsack"
    unit: ClassVar[str] = "unit of memory"

    @property
    def base_cost(self) -> Number:
        """Every item once."""
        return sum(self.runtime)

    @property
    def title(self) -> str:
        """`knapsack of 3 items`."""
        return f"knapsack of {count(len(self.memory), 'item')}"


@reads("knapsack")
def read_knapsack(fields: Fields) -> KnapsackProblem:
    """`memory` and `runtime`, as long as each other."""
    memory, runtime = fields.sizes("memory"), fields.costs("runtime")
    if not memory:
        fields.fail("`memory` is empty", "a knapsack has at least one item")
    if len(memory) != len(runtime):
        fields.fail(
            f"`memory` has {len(memory)} entries and `runtime` {len(runtime)}",
            "each item has one of either",
        )
    return KnapsackProblem(memory, runtime)
