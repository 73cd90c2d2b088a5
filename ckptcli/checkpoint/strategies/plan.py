"""`plan:FILE`: executes a plan that `ckpt plan --export FILE` wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from ckptcli.checkpoint.planned import made_by, strategy_of
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.strategies.base import Elsewhere, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import UsageError
from ckptcli.planning.tape.plan_file import read_plan_file
from ckptcli.planning.tape.program import is_same_but_dtypes


@register
class PlanFile(Strategy):
    """Another program than the plan's is refused, with the first difference; but once it was
    prepared for its own, the same in another precision is taken, in which a check repeats it.
    """

    keyword: ClassVar[str] = "plan"
    summary: ClassVar[str] = "execute a plan: hold, compute and let go of what a file says"
    grammar: ClassVar[str] = "plan:FILE"
    label: ClassVar[str] = "Plan"

    def __init__(self, path: str) -> None:
        self._path = path
        self._plan = read_plan_file(Path(path))
        self._has_met_its_own = False

    @property
    def name(self) -> str:
        return f"{self.keyword}:{self._path}"

    @classmethod
    def parse(cls, arguments: str) -> PlanFile:
        """The file's path."""
        if not arguments:
            raise UsageError("strategy `plan` needs a file", "write `plan:FILE`")
        return cls(arguments)

    def prepared(self, program: Program) -> Strategy:
        plan = self._plan
        if self._has_met_its_own and is_same_but_dtypes(plan.program, found := made_by(program)):
            plan = replace(plan, program=found)
        prepared = strategy_of(plan, self.name).prepared(program)
        self._has_met_its_own = True
        return prepared

    def elsewhere(self, count: int) -> Elsewhere | None:
        return None
