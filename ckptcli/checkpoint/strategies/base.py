"""What a strategy is: decisions in the forward pass, and what answers the backward pass.

A strategy never changes a value; it decides which values are held and how the others come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.builder import build
from ckptcli.checkpoint.policies import Policy
from ckptcli.checkpoint.policies.grammar import split_outside_brackets
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.errors import UsageError
from ckptcli.events import Sink
from ckptcli.graph import Answer, Node


@dataclass(frozen=True, slots=True)
class LayerRegion:
    """`size` consecutive layers of a network: one region under `policy`, or plain (None)."""

    size: int
    policy: Policy | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a strategy is in a library that decides by regions alone.

    Attributes:
        regions: how it groups the layers there.
        reading: in what it is another thing there, for people; empty where it is the same.
    """

    regions: Sequence[LayerRegion]
    reading: str = ""


class Strategy:
    """Base of all strategies: holds everything, leaves layers alone.

    Attributes:
        keyword: the name in the registry.
        summary: one line for `ckpt strategies`.
        grammar: how arguments are written; empty for a strategy without any.
        label: the name in Burn's device line.
        needs_layers: whether the strategy does nothing on a program without layers.
        opens_regions: whether regions that a program opens itself are heeded.
        needs_recording: whether it asks what a program costs, which takes a pass under `balanced`.
        follows_marks: whether it goes by Burn's mark on each op, with the fallback for constants.
        name: as on the command line, arguments included.
    """

    keyword: ClassVar[str]
    summary: ClassVar[str]
    label: ClassVar[str]
    grammar: ClassVar[str] = ""
    needs_layers: ClassVar[bool] = False
    follows_marks: ClassVar[bool] = False
    opens_regions: ClassVar[bool] = True
    needs_recording: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.keyword

    @property
    def title(self) -> str:
        """The label with the arguments, as Rust would print them: `Remat { every: 2 }`."""
        keyword, _, text = self.name.partition(":")
        if keyword != self.keyword or not text:
            return self.label
        arguments = ", ".join(part.replace("=", ": ", 1) for part in split_outside_brackets(text))
        return f"{self.label} {{ {arguments} }}"

    @classmethod
    def parse(cls, arguments: str) -> Strategy:
        """The strategy that `KEYWORD:ARGUMENTS` names.

        Raises:
            UsageError: arguments that the strategy does not take.
        """
        if arguments:
            raise UsageError(f"strategy `{cls.keyword}` takes no arguments, got `{arguments}`")
        return cls()

    def prepared(self, program: Program) -> Strategy:
        """The strategy for one program, told by whoever opens a pass of it.

        A strategy that goes by sizes or costs asks `program`, which runs a pass once for each
        workload, and returns another strategy that decides by what it says. All others are the
        same for every program and return themselves.
        """
        return self

    def pass_begins(self) -> None:
        """A forward pass begins, told by whoever opened it; ids go on counting from the last.

        A strategy that goes by positions in the program counts from here. One that does not define
        it costs nothing: the pass is then the network's own method.
        """

    def recomputes(self, node: Node) -> Answer:
        """Whether the value of this tracked node is computed again instead of being held; with
        `BACKED_UP` it is held, and may be computed again once it was let go of; with `ON_HOST` it
        is moved to the host, and the node's step has the copy.

        Called once, when the node is made; `op`, `params`, `parents` and `mask` are set. Inside a
        region the region decides.
        """
        return False

    def layer_regions(self, count: int) -> Sequence[LayerRegion] | None:
        """How the layers of a network are grouped into regions; None leaves them alone."""
        return None

    def elsewhere(self, count: int) -> Elsewhere | None:
        """What it is for `count` layers in a library that decides by regions alone: its own
        regions, or one plain group where it holds everything. None where it is nothing there.
        """
        regions = self.layer_regions(count)
        if regions is not None:
            return Elsewhere(regions)
        if type(self).recomputes is Strategy.recomputes:
            return Elsewhere([LayerRegion(count, None)])
        return None

    def reasons(self) -> Sequence[str]:
        """Why a strategy that is prepared for a program decides as it does, for people."""
        return ()

    def lints(self, count: int) -> list[str]:
        """Arguments that have no effect on a program of `count` layers, each with the fix."""
        return []

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        """What answers the backward pass over `steps` (emission order, root first)."""
        return build(steps, namespace, sink)
