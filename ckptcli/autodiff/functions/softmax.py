"""Softmax and its relatives.

The maximum is detached, so under `balanced` the subtraction has a constant parent and is held.
When x itself is a leaf that keeps its gradient, Burn's `detach` gives a tracked leaf: the maximum
is then tracked too, and nothing falls back.

Source: Burn 0.22.1, `burn-tensor/src/tensor/activation`.
"""

from __future__ import annotations

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.functions.guarded_steps import MAX_OR_ZERO
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor


def _shifted(x: Tensor, dim: int) -> Tensor:
    """x minus its maximum along `dim`."""
    return x - x.detach().max_dim(dim)


@operation()
def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) divided by its sum along `dim`."""
    exponentials = _shifted(x, dim).exp()
    return exponentials / exponentials.sum_dim(dim)


@operation()
def log_softmax(x: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax."""
    shifted = _shifted(x, dim)
    return shifted - shifted.exp().sum_dim(dim).log()


@operation()
def softmin(x: Tensor, dim: int) -> Tensor:
    """Softmax of -x."""
    return softmax(x.neg(), dim)


@operation()
def quiet_softmax(x: Tensor, dim: int) -> Tensor:
    """Softmax with one more element, 0, that takes a share: exp(x) / (1 + the sum of exp(x)).

    Burn's is nan for a row of -inf, here 0.

    The one more element is among those of which the largest is subtracted.
    """
    largest = unary(MAX_OR_ZERO, x.detach(), positive_dim(x, dim))
    exponentials = (x - largest).exp()
    total = exponentials.sum_dim(dim)
    return exponentials / (total + largest.neg().exp())
