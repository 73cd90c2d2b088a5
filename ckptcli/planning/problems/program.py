"""A recorded program of the engine, to be planned in bytes above parameters and input.

Values are computed again by the op that made them; a step's own work is the same under every plan.
The order of gradients is the tape's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from ckptcli.errors import UsageError
from ckptcli.planning.problems.base import Number, reads
from ckptcli.planning.problems.fields import Fields
from ckptcli.planning.tape.cost_graph import CostGraph, CostNode
from ckptcli.planning.tape.cost_graph_json import ENTRIES, graph_from_json
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.moving import NOTHING_MOVES, Moving
from ckptcli.planning.tape.player import Player
from ckptcli.planning.tape.profile import TapeProfile
from ckptcli.planning.tape.schedule import Schedule
from ckptcli.units import count

COSTS: dict[str, Callable[[CostNode], Number]] = {
    "flops": lambda node: node.flops,
    "count": lambda node: 1 if node.op else 0,
    "time": lambda node: node.time_s,
}
"""What a computation may cost, by the name of the measure."""


UNBOUNDED_BYTES = 1 << 62
"""A budget that every schedule is within."""


@dataclass(frozen=True)
class ProgramProblem:
    """A program and what its computations cost.

    Attributes:
        graph: as recorded.
        cost_of: what one computation of a node costs.
        with_workspace: whether what kernels allocate inside themselves counts.
        moving: what may be moved to the host.
    """

    graph: CostGraph
    cost_of: Callable[[CostNode], Number] = field(default=COSTS["flops"])
    with_workspace: bool = True
    moving: Moving = NOTHING_MOVES

    kind: ClassVar[str] = "program"
    unit: ClassVar[str] = "byte above parameters and input"

    @property
    def cost_name(self) -> str:
        """What costs count, by its name; "" for a measure of the caller's own."""
        return next((name for name, cost_of in COSTS.items() if cost_of is self.cost_of), "")

    @property
    def counts_workspace(self) -> bool:
        """Whether the workspace of kernels is in the bytes: where it was seen, and is asked for."""
        return self.with_workspace and self.graph.sees_workspace

    @property
    def base_cost(self) -> Number:
        """Of the forward pass."""
        return sum(self.model.costs[node.id] for node in self.graph.nodes if node.op)

    @property
    def title(self) -> str:
        """`n = 64, layers = 8 (23 values)`."""
        return f"{self.graph.title} ({count(len(self.model.values), 'value')})"

    @cached_property
    def once_time_s(self) -> float | None:
        """Predicted seconds of a pass that computes everything once; None if it was not timed."""
        if not self.graph.is_timed:
            return None
        forward_s = sum(node.time_s for node in self.graph.nodes)
        return forward_s + sum(self.graph.step_times_s.values())

    def time_s(self, again: Iterable[int]) -> float | None:
        """Predicted seconds of a pass that computes these nodes again: of all that it executes,
        added up; None where the program was not timed.
        """
        if self.once_time_s is None:
            return None
        return self.once_time_s + sum(self.graph.nodes[node].time_s for node in again)

    def schedule_time_s(self, schedule: Schedule) -> float | None:
        """The same of a schedule, with what it moves where the price of that is time."""
        time_s = self.time_s(schedule.computations())
        if time_s is None or self.cost_name != "time":
            return time_s
        return time_s + self.model.moves_cost(schedule)

    @cached_property
    def model(self) -> TapeModel:
        """The program as planners see it."""
        costs = [self.cost_of(node) for node in self.graph.nodes]
        return TapeModel(self.graph, costs, self.moving)

    @cached_property
    def player(self) -> Player:
        """What counts its bytes."""
        return Player(self.model, self.with_workspace)

    @cached_property
    def profile(self) -> TapeProfile:
        """What it takes beside values."""
        return TapeProfile(self.player)


@reads("program")
def read_program(fields: Fields) -> ProgramProblem:
    """What `ckpt plan --export-graph` writes."""
    values = {name: fields.value(name) for name in ENTRIES}
    try:
        return ProgramProblem(graph_from_json(values, lambda policy: None))
    except UsageError as error:
        fields.fail(error.message, error.hint)
