"""What the table says of an op, in words: read from its declaration and its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ckptcli.autodiff.op import KEEPS_NOTHING, Op
from ckptcli.autodiff.ops import DECLARATIONS, OPERATIONS, detach
from ckptcli.autodiff.tensor import Tensor

OWN_OUTPUT = "its output"
"""What an op needs that reads its own output."""


@dataclass(frozen=True, slots=True)
class OpDescription:
    """One op, or a function composed of ops (`bound` is None).

    Attributes:
        call: the function with its parameters and their defaults.
        bound: Burn's mark, or "leaf" for what makes a leaf.
        needs: what its backward step retrieves, in order: `rhs if lhs tracked`.
        keeps: what it holds outside the checkpointer, beyond shapes and scalars; "" for nothing.
        arguments: the function's further parameters.
        differs: how its value or gradient differs from Burn's at some inputs; "" for not at all.
    """

    name: str
    call: str
    bound: str | None
    operands: tuple[str, ...]
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    keeps: str
    is_view: bool
    summary: str
    differs: str


def descriptions() -> dict[str, OpDescription]:
    """Every op and every composed function, by name in alphabetical order."""
    return {name: _describe(name) for name in sorted({*DECLARATIONS, *OPERATIONS})}


def _describe(name: str) -> OpDescription:
    op = DECLARATIONS.get(name)
    function = OPERATIONS.get(name, getattr(Tensor, name, None))
    operands: tuple[str, ...] = ("x", "values")[: 0 if op is None else op.arity]
    arguments: tuple[str, ...] = ()
    call = f"{name}({', '.join(operands)})"
    bound = None if op is None else op.bound.value
    summary = "" if op is None else op.summary
    differs = ""
    if function is not None:
        parameters = inspect.signature(function).parameters.values()
        operands = tuple(p.name for p in parameters if "Tensor" in str(p.annotation))
        arguments = tuple(p.name for p in parameters if p.name not in operands)
        call = f"{name}({', '.join(map(_with_default, parameters))})"
        summary, differs = _told(function)
        if function.__module__ == detach.__name__:
            bound = "leaf"
    return OpDescription(
        name,
        call,
        bound,
        operands,
        arguments,
        () if op is None else _needs(op, operands),
        "" if op is None else op.note,
        op is not None and op.is_view,
        summary,
        differs,
    )


def _told(function: Callable[..., object]) -> tuple[str, str]:
    """The first line of its docstring, and the paragraph that begins with what Burn does."""
    first, *others = (inspect.getdoc(function) or "").split("\n\n")
    summary = first.partition("\n")[0]
    return summary, " ".join(" ".join(p.split()) for p in others if p.startswith("Burn's"))


def _with_default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"


def _needs(op: Op, operands: Sequence[str]) -> tuple[str, ...]:
    """Each operand that is checkpointed, and which one has to be tracked for it."""
    if op.reads_output:
        return (OWN_OUTPUT,)
    if op.keeps is KEEPS_NOTHING:
        return ()
    masks = range(1, len(op.keeps))
    needs = []
    for position, operand in enumerate(operands):
        kept = {mask for mask in masks if position in op.keeps[mask]}
        if kept == set(masks):
            needs.append(operand)
        for other, reason in enumerate(operands):
            if kept and kept == {mask for mask in masks if mask >> other & 1} != set(masks):
                needs.append(f"{operand} if {reason} tracked")
    return tuple(needs)
