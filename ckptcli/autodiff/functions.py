"""Functions composed of ops, in Burn's id order.

Source: Burn 0.22.1, `burn-tensor/src/tensor/activation`.
"""

from __future__ import annotations

from ckptcli.autodiff.apply import binary
from ckptcli.autodiff.ops.arithmetic import MUL
from ckptcli.autodiff.ops.elementwise import sigmoid
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor


@operation()
def silu(x: Tensor) -> Tensor:
    """X * sigmoid(x): two nodes, sigmoid first."""
    return binary(MUL, x, sigmoid(x))
