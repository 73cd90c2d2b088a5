"""Running sums, products and extremes along one dim: compute bound.

All but cumsum keep their input by value and compute the output again in backward.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.reduction import product_before
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import along_dim, positive_dim, put_at
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound

INPUT_KEPT = "input by value"


def _reverse_sum(xp: Any, grad: Any, dim: int) -> Any:
    return xp.flip(xp.cumulative_sum(xp.flip(grad, (dim,)), dim), (dim,))


def _cumsum_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return _reverse_sum(xp, grad, step.params)


def _cumprod_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """No division, so that an element may be 0.

    Of each element it is the product before it times the sum, over the outputs from it on, of their
    gradient times the product of what lies between.
    """
    x, dim = step.state, step.params
    if x.shape[dim] == 0:
        return xp.zeros(x.shape, grad)
    return xp.multiply(product_before(xp, x, dim), _sum_of_later_products(xp, x, grad, dim))


def _sum_of_later_products(xp: Any, x: Any, grad: Any, dim: int) -> Any:
    """S with S[i] = grad[i] + x[i + 1] S[i + 1], by doubling: log2 of the length of passes.

    After a pass, `sums` reach twice as far, and `products` are those of as many elements behind.
    """
    before, length, reach = (slice(None),) * dim, x.shape[dim], 1
    sums = grad
    products = xp.take_slices(x, (*before, slice(1, None)))
    while reach < length:
        near = xp.take_slices(sums, (*before, slice(None, -reach)))
        far = xp.take_slices(sums, (*before, slice(reach, None)))
        joined = xp.add(near, xp.multiply(products, far))
        sums = xp.concat([joined, xp.take_slices(sums, (*before, slice(-reach, None)))], dim)
        if 2 * reach < length:
            products = xp.multiply(
                xp.take_slices(products, (*before, slice(None, length - 2 * reach))),
                xp.take_slices(products, (*before, slice(reach, None))),
            )
        reach *= 2
    return sums


def _extreme_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Each gradient goes to the first element that had the value that runs at its place.

    A nan stays the value that runs, and takes all gradients from its place on.
    """
    x, dim = step.state, step.params
    if x.shape[dim] == 0:
        return xp.zeros(x.shape, grad)
    running = step.op.forward(xp, x, dim)
    before = (slice(None),) * dim
    earlier = xp.take_slices(running, (*before, slice(None, -1)))
    changed = xp.not_equal(xp.take_slices(running, (*before, slice(1, None))), earlier)
    changed = xp.logical_and(changed, xp.equal(earlier, earlier))
    places = xp.reshape(
        xp.arange(x.shape[dim]), tuple(-1 if a == dim else 1 for a in range(len(x.shape)))
    )
    first = xp.zeros_indices((*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    later = xp.where(changed, xp.take_slices(places, (*before, slice(1, None))), 0)
    source = xp.cumulative_max(xp.concat([first, later], dim), dim)
    positions = along_dim(xp, x.shape, source, dim, x.shape)
    return put_at(xp, xp.zeros(x.shape, grad), positions, grad, "add")


def _keep_input(xp: Any, out: Any, x: Any, dim: int) -> Any:
    return x


CUMSUM = Op(
    "cumsum",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.cumulative_sum(x, dim),
    backward=_cumsum_gradient,
)
CUMPROD = Op(
    "cumprod",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.cumulative_prod(x, dim),
    backward=_cumprod_gradient,
    state=_keep_input,
    note=INPUT_KEPT,
)
CUMMIN = Op(
    "cummin",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.cumulative_min(x, dim),
    backward=_extreme_gradient,
    state=_keep_input,
    note=INPUT_KEPT,
)
CUMMAX = Op(
    "cummax",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.cumulative_max(x, dim),
    backward=_extreme_gradient,
    state=_keep_input,
    note=INPUT_KEPT,
)


@operation()
def cumsum(x: Tensor, dim: int) -> Tensor:
    """The running sum along `dim`."""
    return unary(CUMSUM, x, positive_dim(x, dim))


@operation()
def cumprod(x: Tensor, dim: int) -> Tensor:
    """The running product along `dim`."""
    return unary(CUMPROD, x, positive_dim(x, dim))


@operation()
def cummin(x: Tensor, dim: int) -> Tensor:
    """The smallest element so far along `dim`.

    Burn's gradient goes to the last of equal elements, and past a nan: [1, 1, 2, 0] for
    [3, 2, 2, 3] and [3, 0, 0] for [2, nan, 1], here [1, 3, 0, 0] and [1, 2, 0].
    """
    return unary(CUMMIN, x, positive_dim(x, dim))


@operation()
def cummax(x: Tensor, dim: int) -> Tensor:
    """The largest element so far along `dim`.

    Burn's gradient goes to the last of equal elements, and past a nan: [1, 1, 2, 0] for
    [1, 2, 2, 1] and [3, 0, 0] for [2, nan, 3], here [1, 3, 0, 0] and [1, 2, 0].
    """
    return unary(CUMMAX, x, positive_dim(x, dim))
