"""`plan:FILE`: executes a plan that `ckpt plan --export FILE` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ckptcli.checkpoint.planned import strategy_of
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.strategies.base import Elsewhere, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import UsageError
from ckptcli.planning.tape.plan_file import read_plan_file


@register
class PlanFile(Strategy):
    """Another program than the plan's is refused, with the first difference."""

    keyword: ClassVar[str] = "plan"
    summary: ClassVar[str] = "execute a plan: hold, compute and let go of what a file says"
    grammar: ClassVar[str] = "plan:FILE"
    label: ClassVar[str] = "Plan"

    def __init__(self, path: str) -> None:
        self._path = path
        self._plan = read_plan_file(Path(path))

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
        return strategy_of(self._plan, self.name).prepared(program)

    def elsewhere(self, count: int) -> Elsewhere | None:
        return None
