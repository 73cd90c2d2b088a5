"""A strategy that executes a schedule.

It goes by positions in the program, since ids go on counting from pass to pass: the k-th tracked op
of a pass is the k-th of the program. Regions that the program opens itself are not heeded.

Invariant: another program is refused with the first difference, before it runs or at its first op
that is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.checkpoint.schedule_retriever import ScheduleRetriever
from ckptcli.checkpoint.strategies.base import Elsewhere, LayerRegion, Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import CheckpointError, UsageError
from ckptcli.events import BackwardStarted, Sink
from ckptcli.graph import BACKED_UP, ON_HOST, Answer, Node
from ckptcli.planning.tape.plan_file import TapePlan
from ckptcli.planning.tape.program import Made, first_difference
from ckptcli.planning.tape.schedule import Schedule


def made_by(program: Program) -> tuple[Made, ...]:
    """The nodes of a program, as a plan knows them."""
    return tuple(
        Made(n.op, n.shape, n.dtype, n.parents, n.tracked and n.op is not None)
        for n in program().nodes
    )


class PlannedStrategy(Strategy):
    """Holds, computes and lets go of what a schedule says."""

    keyword: ClassVar[str] = "planned"
    summary: ClassVar[str] = "execute a plan"
    label: ClassVar[str] = "Planned"
    opens_regions: ClassVar[bool] = False

    def __init__(
        self,
        schedule: Schedule,
        program: Sequence[Made],
        loaded: int,
        name: str = "planned",
        reasons: Sequence[str] = (),
    ) -> None:
        """`loaded` nodes of the program are made before its forward pass."""
        self.schedule = schedule
        self._program = program
        self._loaded = loaded
        self._name = name
        self._reasons = reasons
        self._positions = [
            position for position, made in enumerate(program) if made.tracked and position >= loaded
        ]
        self._answers = [self._answer(position) for position in self._positions]
        self._operands = {position: program[position].parents for position in self._positions}
        self._ids: list[int] = []

    @property
    def name(self) -> str:
        return self._name

    def prepared(self, program: Program) -> PlannedStrategy:
        """The same, if the program is the one that the plan is for.

        Raises:
            UsageError: it is another.
        """
        difference = first_difference(self._program, made_by(program))
        if difference:
            raise UsageError(
                f"the plan of `{self.name}` is for another program: {difference}",
                "make a plan for this one with `ckpt plan`",
            )
        return PlannedStrategy(self.schedule, self._program, self._loaded, self.name, self._reasons)

    def pass_begins(self) -> None:
        self._ids = []

    def recomputes(self, node: Node) -> Answer:
        """Raises `CheckpointError` at the first op that the plan does not have there."""
        place = len(self._ids)
        planned = self._positions[place] if place < len(self._positions) else None
        name = node.op.name if node.op else ""
        if planned is None or self._program[planned].op != name:
            there = "nothing more" if planned is None else f"`{self._program[planned].op}`"
            raise CheckpointError(
                f"tracked op {place} of the pass is `{name}` (node {node.id}), and the plan of "
                f"`{self.name}` has {there} there",
                "a plan is for a program that is the same in every pass",
            )
        self._ids.append(node.id)
        return self._answers[place]

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        """Takes what is asked for from the steps, and drops the rest."""
        nodes = self._nodes(steps)
        positions = {node.id: position for position, node in nodes.items()}
        wanted = self._wanted()
        values: dict[int, Any] = {}
        dropped: list[int] = []
        for step in steps:
            position = positions[step.id]
            if position in self.schedule.moved:
                values[position] = step.backup_values[0]
                step.backup_values = ()
            saved = zip(step.saved, step.saved_values)
            backups = zip(step.parents, step.backup_values)
            for is_backup, entries in ((False, saved), (True, backups)):
                for node, value in entries:
                    position = positions.get(node.id, -1)
                    if value is not None and position in wanted:
                        values.setdefault(position, value)
                    elif value is not None and is_backup:
                        dropped.append(node.id)
            step.saved_values = step.backup_values = ()
        if sink is not None:
            required = {nodes[p].id: uses for p, uses in wanted.items() if p in nodes}
            sink.emit(BackwardStarted(steps[0].id, len(steps), required, tuple(dropped)))
        self._ids = []
        return ScheduleRetriever(self.schedule, nodes, self._operands, values, namespace, sink)

    def reasons(self) -> Sequence[str]:
        return self._reasons

    def _answer(self, position: int) -> Answer:
        if position in self.schedule.moved:
            return ON_HOST
        if position not in self.schedule.computed:
            return False
        return BACKED_UP if position in self.schedule.held else True

    def _nodes(self, steps: Sequence[Node]) -> dict[int, Node]:
        """The nodes of this pass by their positions in the program."""
        position_of = dict(zip(self._ids, self._positions))
        nodes: dict[int, Node] = {}
        for step in steps:
            position = position_of[step.id]
            nodes[position] = step
            for parent, of in zip(step.parents, self._program[position].parents):
                nodes.setdefault(of, parent)
        return nodes

    def _wanted(self) -> dict[int, int]:
        """How often each value is asked for: by steps, and to compute others."""
        uses: dict[int, int] = {}
        for retrieval in self.schedule.retrievals:
            uses[retrieval.node] = uses.get(retrieval.node, 0) + 1
        for node in self.schedule.computations():
            for operand in self._operands[node]:
                uses[operand] = uses.get(operand, 0) + 1
        return uses

    def elsewhere(self, count: int) -> Elsewhere | None:
        return None


class Renamed(Strategy):
    """A strategy under the name of the plan that chose it."""

    keyword: ClassVar[str] = "renamed"
    summary: ClassVar[str] = "a named strategy that a plan chose"
    label: ClassVar[str] = "Planned"

    def __init__(self, inner: Strategy, name: str, reasons: Sequence[str] = ()) -> None:
        self._inner = inner
        self._name = name
        self._reasons = reasons

    @property
    def name(self) -> str:
        return self._name

    def prepared(self, program: Program) -> Renamed:
        return Renamed(self._inner.prepared(program), self._name, self._reasons)

    def recomputes(self, node: Node) -> Answer:
        return self._inner.recomputes(node)

    def layer_regions(self, count: int) -> Sequence[LayerRegion] | None:
        return self._inner.layer_regions(count)

    def elsewhere(self, count: int) -> Elsewhere | None:
        return self._inner.elsewhere(count)

    def lints(self, count: int) -> list[str]:
        return self._inner.lints(count)

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        return self._inner.retriever(steps, namespace, sink)

    def reasons(self) -> Sequence[str]:
        return (*self._reasons, *self._inner.reasons())


def strategy_of(plan: TapePlan, name: str, reasons: Sequence[str] = ()) -> Strategy:
    """What executes a plan, called `name`."""
    if plan.schedule is None:
        return Renamed(parse_strategy(plan.strategy), name, reasons)
    return PlannedStrategy(plan.schedule, plan.program, plan.loaded, name, reasons)
