"""Products of matrices and vectors: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`; the vector case, `Tensor::matmul`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.op import KEEPS_OTHER, LEFT_TRACKED, RIGHT_TRACKED, Op
from ckptcli.autodiff.ops.permute import SWAP_DIMS
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _matmul_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """The right operand's gradient first: in a network that is the weight's, which stays, and the
    activation that it needs is freed before the next array is made.
    """
    lhs_grad = rhs_grad = None
    rhs = kept.pop() if step.mask & LEFT_TRACKED else None
    if step.mask & RIGHT_TRACKED:
        rhs_grad = xp.matmul(xp.matrix_transpose(kept.pop()), grad)
    if rhs is not None:
        lhs_grad = xp.matmul(grad, xp.matrix_transpose(rhs))
    return lhs_grad, rhs_grad


@dataclass(frozen=True, slots=True)
class Repetition:
    """Over how many leading dims a product is repeated; policies ask for it."""

    batch_dims: int


MATMUL = Op(
    "matmul",
    Bound.COMPUTE,
    2,
    forward=lambda xp, lhs, rhs, _: xp.matmul(lhs, rhs),
    backward=_matmul_gradient,
    keeps=KEEPS_OTHER,
    broadcasts=True,
    flops=lambda operands, output: 2 * math.prod(output) * operands[0][-1],
)


def _cross(xp: Any, lhs: Any, rhs: Any, dim: int) -> Any:
    """`dim` is counted from the end, so that it means the same after broadcasting."""
    first = xp.multiply(xp.roll(lhs, -1, dim), xp.roll(rhs, 1, dim))
    second = xp.multiply(xp.roll(lhs, 1, dim), xp.roll(rhs, -1, dim))
    return xp.subtract(first, second, first)


def _cross_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    lhs_grad = rhs_grad = None
    if step.mask & LEFT_TRACKED:
        lhs_grad = _cross(xp, kept.pop(), grad, step.params)
    if step.mask & RIGHT_TRACKED:
        rhs_grad = _cross(xp, grad, kept.pop(), step.params)
    return lhs_grad, rhs_grad


CROSS = Op(
    "cross",
    Bound.COMPUTE,
    2,
    forward=_cross,
    backward=_cross_gradient,
    keeps=KEEPS_OTHER,
    broadcasts=True,
    flops=lambda operands, output: 3 * math.prod(output),
)


@operation()
def cross(lhs: Tensor, rhs: Tensor, dim: int) -> Tensor:
    """The cross product along `dim`, of size 3 in both.

    Raises:
        ShapeError: the dim has another size.
    """
    axis = positive_dim(lhs, dim) - len(lhs.shape)
    if lhs.shape[axis] != 3 or rhs.shape[positive_dim(rhs, axis)] != 3:
        shapes = f"{list(lhs.shape)} and {list(rhs.shape)}"
        raise ShapeError(f"`cross` needs size 3 along dim {dim}, got {shapes}")
    return binary(CROSS, lhs, rhs, axis)


@operation("__matmul__")
def matmul(lhs: Tensor, rhs: Tensor) -> Tensor:
    """The matrix product over the last two dims; leading dims are broadcast.

    As in Burn, a batch of vectors against one matrix, [B, 1, K] x [1, K, N], is computed with the
    batch as rows: swap_dims, matmul, swap_dims.
    """
    rank = lhs.value.ndim
    if rank >= 3 and rhs.value.ndim == rank and _is_batch_of_vectors(lhs.shape, rhs.shape):
        swap = (rank - 3, rank - 2)
        return unary(SWAP_DIMS, binary(MATMUL, unary(SWAP_DIMS, lhs, swap), rhs), swap)
    return binary(MATMUL, lhs, rhs, None if rank == 2 else _repetition(lhs.shape, rhs.shape))


def _repetition(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> Repetition | None:
    """The leading dims that both operands have, counted from the last, as broadcasting does; one
    of size 1 is broadcast.
    """
    both = sum(left == right != 1 for left, right in zip(lhs[-3::-1], rhs[-3::-1]))
    return Repetition(both) if both else None


def _is_batch_of_vectors(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> bool:
    """Whether the last three dims are [B, 1, K] and [1, K, N]."""
    return lhs[-2] == 1 == rhs[-3] and lhs[-1] == rhs[-2]
