"""The singular value decomposition of a square matrix: compute bound, reads its own output.

The gradient's rule divides by differences and sums of singular values. `eps` broadens both: 1 / x
becomes x / (x^2 + eps^2), so that equal values, whose numerators vanish, give 0. With eps = 0 it is
the rule of libraries, 0 / 0 = nan for two values that are zero. The signs of singular vectors are
free; but a gradient that was formed with one choice of them must meet that choice again.

Source: J. Townsend, "Differentiating the singular value decomposition" (2016); Z.-Q. Wan and
S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019), for the broadening.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.apply import unary, with_own_output
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.slice import SLICE
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.regions import checkpoint_name
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

FLOPS_OF_A_CUBE = 21
"""Of a full decomposition by bidiagonalisation, in units of n^3 (Golub and Van Loan, 8.6)."""


@dataclass(frozen=True, slots=True)
class SvdParams:
    """The static arguments: how many columns of the factors are used, and the broadening."""

    columns: int
    eps: float


def _svd(xp: Any, x: Any, params: SvdParams) -> Any:
    return xp.svd(x)


@dataclass(frozen=True, slots=True)
class _Factors:
    """The parts of a packed decomposition, or of its gradient: U, s as one row, V."""

    u: Any
    s: Any
    v: Any

    @classmethod
    def of(cls, xp: Any, packed: Any, columns: int) -> _Factors:
        """The parts, cut to `columns` columns."""
        n = (packed.shape[0] - 1) // 2
        parts = (slice(0, n), slice(n, n + 1), slice(n + 1, 2 * n + 1))
        return cls(*(xp.take_slices(packed, (rows, slice(0, columns))) for rows in parts))


def _svd_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """U (left V_k^T) + U_k right^T V^T, where only the first k columns have cotangents.

    The inner matrix of the rule is zero but for its first k columns (`left`) and rows (`right`), so
    that products take n^2 k operations, not n^3. Without broadening all columns count, as in the
    rule of libraries.
    """
    n = grad.shape[1]
    columns = step.params.columns if step.params.eps else n
    packed = kept.pop()
    whole, used = _Factors.of(xp, packed, n), _Factors.of(xp, packed, columns)
    cotangents = _Factors.of(xp, grad, columns)
    left, right = _inner(xp, whole, cotangents, step.params.eps, columns)
    gradient = xp.matmul(xp.matmul(whole.u, left), xp.matrix_transpose(used.v))
    if right is None:
        return gradient
    rest = xp.take_slices(whole.v, (slice(0, n), slice(columns, n)))
    upper = xp.matmul(used.u, xp.matrix_transpose(xp.matmul(rest, right)))
    return xp.add(gradient, upper, gradient)


def _inner(
    xp: Any, whole: _Factors, cotangents: _Factors, eps: float, columns: int
) -> tuple[Any, Any | None]:
    """The first k columns of the rule's inner matrix, and the transpose of its upper right block.

    On the diagonal stand the cotangents of the singular values.
    """
    n = whole.s.shape[1]
    turned = _skew(xp, xp.matmul(xp.matrix_transpose(whole.u), cotangents.u))
    other = _skew(xp, xp.matmul(xp.matrix_transpose(whole.v), cotangents.v))
    row = xp.take_slices(whole.s, (slice(0, 1), slice(0, columns)))
    column = xp.matrix_transpose(whole.s)
    rows = xp.reshape(xp.arange(n), (n, 1))
    diagonal = xp.equal(rows, xp.reshape(xp.arange(columns), (1, columns)))
    apart = xp.where(diagonal, 0.0, _inverse(xp, xp.subtract(row, column), eps))
    together = xp.where(diagonal, 0.0, _inverse(xp, xp.add(row, column), eps))
    both, difference = xp.add(apart, together), xp.subtract(apart, together)
    left = xp.add(xp.multiply(both, turned), xp.multiply(difference, other))
    left = xp.where(diagonal, cotangents.s, xp.multiply(left, 0.5))
    if columns == n:
        return left, None
    below = (slice(columns, n), slice(0, columns))
    both, difference, turned, other = (
        xp.take_slices(matrix, below) for matrix in (both, difference, turned, other)
    )
    right = xp.add(xp.multiply(difference, turned), xp.multiply(both, other))
    return left, xp.multiply(right, 0.5)


def _skew(xp: Any, product: Any) -> Any:
    """The first k columns of J - J^T for a J whose other columns are zero."""
    columns = product.shape[1]
    top = xp.take_slices(product, (slice(0, columns), slice(0, columns)))
    skew = xp.subtract(top, xp.matrix_transpose(top))
    if columns == product.shape[0]:
        return skew
    below = xp.take_slices(product, (slice(columns, product.shape[0]), slice(0, columns)))
    return xp.concat([skew, below], 0)


def _inverse(xp: Any, x: Any, eps: float) -> Any:
    """1 / x, broadened."""
    return xp.divide(x, xp.add(xp.square(x), eps * eps))


SVD = Op(
    "svd",
    Bound.COMPUTE,
    1,
    forward=_svd,
    backward=_svd_gradient,
    reads_output=True,
    free_signs=lambda params: params.columns,
    flops=lambda operands, output: FLOPS_OF_A_CUBE * operands[0][0] ** 3,
)


@operation()
def svd(x: Tensor, columns: int | None = None, eps: float = 1e-12) -> Tensor:
    """U, s and V of x = U diag(s) V^T, packed below each other: (2n + 1, columns) for x (n, n).

    Rows 0 to n - 1 are U, row n is s, largest first, the others are V; slices take them apart.
    All `columns` are taken unless fewer are asked for. The whole packed value, (2n + 1, n), has the
    name `svd`, so that a policy can save it. A matrix that is not finite gives nan.

    Raises:
        ShapeError: x is not a square matrix, or has fewer columns.
    """
    shape = x.shape
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ShapeError(f"`svd` takes a square matrix, got shape {list(shape)}")
    n = shape[0]
    used = n if columns is None else columns
    if not 1 <= used <= n:
        raise ShapeError(f"`svd` of shape {list(shape)} cannot give {used} columns")
    if not eps >= 0.0:
        raise ShapeError(f"`svd` cannot broaden by eps = {eps}", "use 0 or a small positive number")
    packed = unary(SVD, x, SvdParams(used, float(eps)))
    packed = with_own_output(checkpoint_name(packed, "svd"))
    return packed if used == n else unary(SLICE, packed, (slice(None), slice(0, used)))
