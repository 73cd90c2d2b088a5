"""What the engine and strategies ask of an op, as data, from the node that the op made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ckptcli.autodiff.op import Op
from ckptcli.graph import Node
from ckptcli.planning.tape.cost_graph import OpFacts


def facts_of(node: Node) -> OpFacts | None:
    """The facts of the node's op; None for a leaf."""
    op = node.op
    if not isinstance(op, Op):
        return None
    return OpFacts(
        bound=op.bound.value,
        arity=op.arity,
        keeps=op.kept(node.mask, len(node.parents)) if node.tracked else (),
        params=plain(node.params),
        batch_dims=getattr(node.params, "batch_dims", 0),
        evaluates_again=op.evaluates_again,
        reads_output=op.reads_output,
    )


def arrays_in(values: Any) -> Iterator[Any]:
    """The arrays in nested tuples and records."""
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple | list):
            stack.extend(value)
        elif is_dataclass(value):
            stack.extend(getattr(value, field.name) for field in fields(value))
        elif hasattr(value, "nbytes") and hasattr(value, "shape"):
            yield value


def plain(params: Any) -> Any:
    """Static arguments where they are numbers, names or tuples of them; None for all others, which
    may hold arrays.
    """
    if params is None or isinstance(params, bool | int | float | str):
        return params
    if isinstance(params, tuple | list):
        parts = [plain(part) for part in params]
        if all(part is not None or given is None for part, given in zip(parts, params)):
            return tuple(parts)
    return None
