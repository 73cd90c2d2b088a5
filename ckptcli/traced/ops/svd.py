"""The singular value decomposition of a square matrix, with a broadened gradient.

phi(x) = x / (x^2 + eps^2) takes the place of 1 / x for differences and sums of singular values, so
that equal or vanishing ones give zero and not infinity; eps = 0 is the rule without it.

Source: Townsend, "Differentiating the singular value
decomposition" (2016).
"""

from __future__ import annotations

from typing import Any

from ckptcli.traced.node import Shape
from ckptcli.traced.op import Op
from ckptcli.traced.ops.output import output
from ckptcli.traced.ops.permute import transpose
from ckptcli.traced.ops.products import matmul
from ckptcli.traced.ops.reshape import reshape
from ckptcli.traced.ops.slice import diagonal_matrix
from ckptcli.traced.tensor import Tensor, apply, traced_op

BROADENING = 1e-12


def _forward(xp: Any, matrix: Any, epsilon: float) -> tuple[Any, Any, Any]:
    packed = xp.svd(matrix)
    size = packed.shape[1]
    u, s, v = (
        xp.take_slices(packed, (slice(first, last), slice(0, size)))
        for first, last in ((0, size), (size, size + 1), (size + 1, 2 * size + 1))
    )
    return u, xp.reshape(s, (size,)), v


def _checked_square(shape: Shape, epsilon: float) -> Shape:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError("it takes a square matrix")
    return ()


def _vjp(g: dict[int, Tensor], out: Tensor, matrix: Tensor, epsilon: float) -> tuple[Tensor]:
    """`g` has the gradients of u, s and v that there are."""
    u, s, v = _outputs(out, matrix.shape[0])
    inner = []
    if 0 in g or 2 in g:
        differences, sums = _inverses(s, epsilon)
    if 0 in g:
        inner.append((differences + sums) * _antisymmetric(matmul(transpose(u), g[0])))
    if 2 in g:
        inner.append((differences - sums) * _antisymmetric(matmul(transpose(v), g[2])))
    if 1 in g:
        inner.append(diagonal_matrix(g[1]))
    middle = inner[0]
    for term in inner[1:]:
        middle = middle + term
    return (matmul(matmul(u, middle), transpose(v)),)


def _antisymmetric(x: Tensor) -> Tensor:
    return (x - transpose(x)) * 0.5


def _inverses(s: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """phi(s_j - s_i) and phi(s_j + s_i)."""
    size = s.shape[0]
    row, column = reshape(s, (1, size)), reshape(s, (size, 1))
    return _broadened(row - column, epsilon), _broadened(row + column, epsilon)


def _broadened(x: Tensor, epsilon: float) -> Tensor:
    return x / (x * x + epsilon * epsilon)


SVD = Op("svd", forward=_forward, shape=_checked_square, vjp=_vjp)


@traced_op()
def svd(matrix: Tensor, epsilon: float = BROADENING) -> tuple[Tensor, Tensor, Tensor]:
    """u, s and v with `matrix = u diag(s) v^T`; s descends.

    Raises:
        ShapeError: the matrix is not square.
    """
    return _outputs(apply(SVD, (matrix,), (epsilon,)), matrix.shape[0])


def _outputs(whole: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    square = (size, size)
    return output(whole, 0, square), output(whole, 1, (size,)), output(whole, 2, square)
