"""A leaf of an intermediate value: no step on the tape."""

from __future__ import annotations

from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor, new_leaf


@operation()
def detach(x: Tensor) -> Tensor:
    """The same value as a new leaf: no gradient flows to where it came from.

    Detaching a leaf that keeps its gradient gives a leaf that keeps its own.
    """
    keeps_gradient = x.node.op is None and x.node.tracked
    return new_leaf(x.value, x.device, tracked=1 if keeps_gradient else 0)
