"""The program that a schedule is for, as far as it takes to recognise it.

Invariant: the difference of two programs is the first one, in the order of the forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ckptcli.planning.tape.cost_graph import ApplyOp, CostGraph, DrawLeaf, MakeLeaf
from ckptcli.units import count


class Made(NamedTuple):
    """One node of a program.

    Attributes:
        op: None for a leaf.
        shape, dtype: of the value.
        parents: positions of the operands.
        tracked: whether it is an op's output through which a gradient flows.
    """

    op: str | None
    shape: tuple[int, ...]
    dtype: str
    parents: tuple[int, ...]
    tracked: bool


def program_made(graph: CostGraph) -> tuple[Made, ...]:
    """The nodes of a recorded program."""
    return tuple(
        Made(n.op, n.shape, n.dtype, n.parents, n.tracked and n.op is not None) for n in graph.nodes
    )


def loaded_count(graph: CostGraph) -> int:
    """How many nodes are made before the forward pass."""
    return sum(isinstance(action, MakeLeaf | DrawLeaf | ApplyOp) for action in graph.load)


def is_same_but_dtypes(first: Sequence[Made], second: Sequence[Made]) -> bool:
    """Whether two programs are the same in another precision."""
    return [made._replace(dtype="") for made in first] == [
        made._replace(dtype="") for made in second
    ]


def first_difference(planned: Sequence[Made], found: Sequence[Made]) -> str:
    """Where two programs part; "" if they are the same."""
    for position, (there, here) in enumerate(zip(planned, found)):
        if there != here:
            return f"node {position} is {_words(here)}, and {_words(there)} in the plan"
    if len(planned) != len(found):
        return f"it has {count(len(found), 'node')}, and the plan is for {len(planned)}"
    return ""


def _words(made: Made) -> str:
    what = f"`{made.op}`" if made.op else "a leaf"
    of = f" of nodes {', '.join(map(str, made.parents))}" if made.parents else ""
    return f"{what} of shape {list(made.shape)}, {made.dtype}{of}"


def made_of(entries: Sequence[Sequence[Any]]) -> tuple[Made, ...]:
    """The program as JSON has it.

    Raises:
        TypeError, ValueError: it is none.
    """
    return tuple(
        Made(op, tuple(map(int, shape)), str(dtype), tuple(map(int, parents)), bool(tracked))
        for op, shape, dtype, parents, tracked in entries
    )
