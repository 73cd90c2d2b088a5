"""`revolve:SLOTS`: layers computed again by the binomial schedule, with so many states in memory.

Source: A. Griewank and A. Walther, "Revolve" (2000).
"""

from __future__ import annotations

from typing import ClassVar

from ckptcli import units
from ckptcli.checkpoint.planned import PlannedStrategy
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.strategies.base import Elsewhere, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import UsageError
from ckptcli.planning.binomial import advances
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.program import loaded_count, program_made
from ckptcli.planning.tape.revolve import revolved

MOST_DIGITS = 9
"""More slots than any program has layers."""


@register
class Revolve(Strategy):
    """A schedule for the layers of the program that it is prepared for."""

    keyword: ClassVar[str] = "revolve"
    summary: ClassVar[str] = "recompute layers by the binomial schedule from SLOTS states"
    grammar: ClassVar[str] = "revolve:SLOTS"
    label: ClassVar[str] = "Revolve"
    needs_recording: ClassVar[bool] = True
    needs_layers: ClassVar[bool] = True

    def __init__(self, slots: int) -> None:
        """`slots` has the one of what is there before the first layer."""
        self.slots = slots

    @property
    def name(self) -> str:
        return f"{self.keyword}:{self.slots}"

    @classmethod
    def parse(cls, arguments: str) -> Revolve:
        """The number of slots, at least 1."""
        is_number = arguments.isascii() and arguments.isdigit() and len(arguments) <= MOST_DIGITS
        if not is_number or not int(arguments):
            raise UsageError(
                f"strategy `revolve` needs a number of slots above 0, got `{arguments}`",
                "write `revolve:3`",
            )
        return cls(int(arguments))

    def prepared(self, program: Program) -> Strategy:
        """The schedule's strategy.

        Raises:
            UsageError: a program with more than one loop over layers, or none.
        """
        graph = program.costs()
        if len(graph.loops) != 1:
            raise UsageError(
                f"strategy `{self.name}` reverses one loop over layers, and {graph.title} has "
                f"{len(graph.loops)}",
                "use `sqrt` or `budget:SIZE`",
            )
        layers = graph.loops[0]
        schedule = revolved(TapeModel(graph, [0] * len(graph.nodes)), self.slots)
        again = advances(layers, min(self.slots, layers))
        slots = units.count(self.slots, "slot")
        reasons = (f"{units.count(layers, 'layer')} from {slots}: {again} computed again",)
        made, loaded = program_made(graph), loaded_count(graph)
        return PlannedStrategy(schedule, made, loaded, self.name, reasons)

    def elsewhere(self, count: int) -> Elsewhere | None:
        return None
