"""One of the arrays of an op that gives several.

The op's own node has a tuple as value; only this op takes it as operand. Its gradient goes into the
place of its index, which `ckptcli.traced.gradient` sees to.
"""

from __future__ import annotations

from ckptcli.traced.node import Node
from ckptcli.traced.op import Op
from ckptcli.traced.tensor import Tensor


def _no_vjp(*_: object) -> tuple[None]:
    raise NotImplementedError("the gradient pass handles `output` itself")


OUTPUT = Op(
    "output",
    forward=lambda xp, arrays, index, shape: arrays[index],
    shape=lambda _, index, shape: shape,
    vjp=_no_vjp,
)


def output(whole: Tensor, index: int, shape: tuple[int, ...]) -> Tensor:
    """Array `index` of an op's results, which has this shape."""
    node = Node(OUTPUT, (whole.node,), (index, shape), shape, whole.dtype)
    return Tensor(node, whole.history, whole.tracer)
