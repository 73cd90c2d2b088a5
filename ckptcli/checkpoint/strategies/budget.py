"""`budget:64MiB`: the cheapest way that was found to keep a pass within so many bytes.

Bytes are those that the pass adds above parameters and input, gradients and the workspace of
kernels included; cost is floating-point operations, so that the same command makes the same plan.
"""

from __future__ import annotations

from typing import ClassVar

from ckptcli import units
from ckptcli.checkpoint.planned import PlannedStrategy, strategy_of
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.strategies.base import Elsewhere, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import PlanError, UsageError
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.choice import check_feasible, choose
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.planning.tape.program import is_same_but_dtypes, loaded_count, program_made


@register
class Budget(Strategy):
    """Plans for the program that it is prepared for."""

    keyword: ClassVar[str] = "budget"
    summary: ClassVar[str] = "plan for a peak of SIZE above parameters and input"
    grammar: ClassVar[str] = "budget:SIZE"
    label: ClassVar[str] = "Budget"
    needs_recording: ClassVar[bool] = True

    def __init__(self, budget_bytes: int, text: str) -> None:
        self.budget_bytes = budget_bytes
        self._text = text
        self._planned: dict[int, tuple[CostGraph, Strategy]] = {}
        """By the identity of a graph, which is kept with it."""

    @property
    def name(self) -> str:
        return f"{self.keyword}:{self._text}"

    @classmethod
    def parse(cls, arguments: str) -> Budget:
        """A size, `64MiB`."""
        try:
            size = units.parse_whole_bytes(arguments)
        except ValueError:
            raise UsageError(
                f"strategy `budget` needs a size, got `{arguments}`", "write `budget:64MiB`"
            ) from None
        return cls(size, arguments)

    def prepared(self, program: Program) -> Strategy:
        """The plan's strategy.

        Raises:
            PlanError: nothing fits, with the smallest budget that does and what sets it.
        """
        graph = program.costs()
        if id(graph) not in self._planned:
            self._planned[id(graph)] = graph, self._in_other_precision(graph) or self._plan(program)
        return self._planned[id(graph)][1].prepared(program)

    def _in_other_precision(self, graph: CostGraph) -> Strategy | None:
        """The plan of the same program in another precision, if one was made: the budget is that
        of the program's own, and a check repeats the plan in float64.
        """
        made = program_made(graph)
        for other, strategy in self._planned.values():
            if isinstance(strategy, PlannedStrategy) and is_same_but_dtypes(
                program_made(other), made
            ):
                loaded = loaded_count(graph)
                return PlannedStrategy(
                    strategy.schedule, made, loaded, self.name, strategy.reasons()
                )
        return None

    def _plan(self, program: Program) -> Strategy:
        choice = choose(ProgramProblem(program.costs()), self.budget_bytes, program.named())
        strategy = strategy_of(check_feasible(choice), self.name, choice.reasons())
        peak_bytes = program.peak_bytes(strategy)
        if peak_bytes > self.budget_bytes:
            raise PlanError(
                f"the plan of `{self.name}` peaks at {peak_bytes} bytes, above its budget",
                "this is a defect of the planner, please report it with the program that shows it",
            )
        return strategy

    def elsewhere(self, count: int) -> Elsewhere | None:
        return None
