"""Fault injection: a backward pass in which values come back otherwise than they were.

The ops of the nodes that a pass may compute again are replaced when the pass begins, so that the
forward pass, the backward steps and the engine itself stay as they are. It is what systems have
shipped: a replayed program that a compiler rounds otherwise, a tensor stored in another layout or
precision, a copy on the host that is spoilt. `ckpt check` has to see it.

Source: how `jax.checkpoint` came to a wrong gradient on the tensor renormalisation group: its
forward pass multiplies by a reciprocal square root, its replay divides by a square root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.svd import SvdParams
from ckptcli.backends.base import Namespace
from ckptcli.backends.dtypes import DTYPES
from ckptcli.backends.host_copy import HostCopy
from ckptcli.checkpoint.program_graph import Program
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UsageError
from ckptcli.events import Sink
from ckptcli.graph import Node
from ckptcli.verify.fault import Fault, Signs

Forward = Callable[..., Any]

_UNIT = 0.625
"""Times epsilon and x: 0.625 to 1.25 units in the last place of x, which rounds to one."""


def _reciprocal(forward: Forward, xp: Any, x: Any, divisor: Any, _: Any) -> Any:
    """X * (1 / divisor) where the forward pass divides."""
    return xp.multiply(x, xp.reciprocal(divisor))


def _norm(forward: Forward, xp: Any, x: Any, _: Any) -> Any:
    """The sum of squares as the product of a row with itself, as libraries compute a norm."""
    row = xp.reshape(xp.sqrt(x), (1, _size(x)))
    return xp.reshape(xp.matmul(row, xp.matrix_transpose(row)), (1,))


def _ulp(forward: Forward, xp: Any, x: Any, params: Any) -> Any:
    """One unit in the last place up, where a single number is rooted."""
    root = forward(xp, x, params)
    if _size(x) > 1:
        return root
    return xp.add(root, xp.multiply(root, _UNIT * DTYPES[xp.dtype_name(root)].epsilon))


def _layout(forward: Forward, xp: Any, x: Any, params: Any) -> Any:
    """The sum over memory whose first dim lies innermost, as in Fortran."""
    turned = xp.permute_dims(x, tuple(reversed(range(x.ndim))))
    return forward(xp, xp.reshape(turned, (_size(x),)), params)


def _float32(forward: Forward, xp: Any, x: Any, other: Any, params: Any) -> Any:
    """X from a copy that was stored as float32; of a product with itself, both."""
    stored = xp.astype(xp.astype(x, "float32"), xp.dtype_name(x))
    return forward(xp, stored, stored if other is x else other, params)


def _size(x: Any) -> int:
    size = 1
    for length in x.shape:
        size *= length
    return size


_KINDS: dict[str, dict[str, Forward]] = {
    "reciprocal": {"div": _reciprocal},
    "norm": {"sum": _norm},
    "ulp": {"sqrt": _ulp},
    "layout": {"sum": _layout},
    "float32": {"div": _float32, "mul": _float32},
}
"""Kind -> op -> what its recomputation computes."""


def perturbed(strategy: Strategy, fault: Fault) -> Strategy:
    """`strategy`, which decides what it decides, but values come back with `fault`."""
    twin = copy(strategy)
    object.__setattr__(twin, "retriever", partial(_retriever, strategy, fault))
    object.__setattr__(twin, "pass_begins", strategy.pass_begins)
    object.__setattr__(twin, "recomputes", strategy.recomputes)
    object.__setattr__(twin, "prepared", partial(_prepared, strategy, fault))
    return twin


def _prepared(strategy: Strategy, fault: Fault, program: Program) -> Strategy:
    """The strategy as it is for a program, with the same fault."""
    return perturbed(strategy.prepared(program), fault)


def _retriever(
    strategy: Strategy, fault: Fault, steps: list[Node], namespace: Namespace, sink: Sink | None
) -> Retriever:
    """The strategy's own, after the ops of the nodes that `fault` is about are replaced, or the
    copies on the host.
    """
    if fault.kind == "host":
        _spoil(fault, steps, namespace)
    elif fault.signs is not None:
        _turn_signs(fault, fault.signs, steps)
    else:
        for node in steps:
            assert node.op is not None
            forward = _KINDS[fault.kind].get(node.op.name)
            if forward is not None and _is_meant(fault, node):
                _replace(node, fault, forward)
    return strategy.retriever(steps, namespace, sink)


def _spoil(fault: Fault, steps: Sequence[Node], xp: Any) -> None:
    """Move each number on the host to the one beside it: those of regions and those of steps."""
    held = [value for node in steps for value in node.backup_values]
    roots = {id(node.region.root): node.region.root for node in steps if node.region is not None}
    for root in roots.values():
        held += root.held.values()
    for copied in held:
        if isinstance(copied, HostCopy):
            x = xp.from_host(copied)
            unit = _UNIT * DTYPES[xp.dtype_name(x)].epsilon
            copied.array = xp.to_host(xp.add(x, xp.multiply(x, unit))).array
            fault.hits += 1


def _is_meant(fault: Fault, node: Node) -> bool:
    """A tensor is stored once: of products, that with itself is the one that reads it."""
    op = node.op
    assert op is not None
    if fault.kind == "float32" and op.name == "mul":
        return node.parents[0] is node.parents[1]
    return True


def _turn_signs(fault: Fault, signs: Signs, steps: Sequence[Node]) -> None:
    """Raises `UsageError` for columns that the step does not keep."""
    found = sorted((n for n in steps if isinstance(n.params, SvdParams)), key=lambda n: n.id)
    place = 2 * signs.step + signs.second
    if place >= len(found):
        return
    node = found[place]
    kept = node.params.columns
    for column in signs.columns:
        if column >= kept:
            raise UsageError(
                f"`{fault.text}` turns column {column}, and step {signs.step + 1} keeps {kept}",
                f"use 0 to {kept - 1}",
            )
    _replace(node, fault, partial(_with_signs, signs.columns or tuple(range(kept))))


def _with_signs(columns: Sequence[int], forward: Forward, xp: Any, x: Any, params: Any) -> Any:
    """A packed decomposition with these columns of U and V times -1."""
    packed = forward(xp, x, params)
    n = packed.shape[1]
    for column in columns:
        for rows in (slice(0, n), slice(n + 1, 2 * n + 1)):
            part = (rows, slice(column, column + 1))
            packed = xp.with_slices(packed, part, xp.negative(xp.take_slices(packed, part)))
    return packed


def _replace(node: Node, fault: Fault, forward: Forward) -> None:
    """Let the node's value be computed again by `forward`, which gets the op's own first."""
    op = node.op
    assert isinstance(op, Op)

    def counted(*arguments: Any) -> Any:
        fault.hits += 1
        return forward(op.forward, *arguments)

    twin = replace(op, forward=counted)
    node.op = twin
    for value in node.saved:
        if value.id == node.id:  # the node as its own step saves it
            value.op = twin
