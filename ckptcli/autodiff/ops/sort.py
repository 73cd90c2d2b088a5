"""Elements in order: compute bound, with the integer indices as state. Equal ones keep theirs.

Source: Burn 0.22.1, `burn-autodiff/src/ops/{tensor,sort}.rs`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, no_flop
from ckptcli.autodiff.ops.select import SELECT
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import INDICES_KEPT, along_dim, positive_dim, take_at
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.backends.base import Array
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _sort(xp: Any, x: Any, params: tuple[int, bool]) -> Any:
    order = xp.argsort(x, *params)
    return take_at(xp, x, along_dim(xp, x.shape, order, params[0], x.shape), x.shape)


def _sort_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.put_along_dim(grad.shape, step.state, grad, step.params[0])


SORT = Op(
    "sort",
    Bound.COMPUTE,
    1,
    forward=_sort,
    backward=_sort_gradient,
    state=lambda xp, out, x, params: xp.argsort(x, *params),
    flops=no_flop,
    note=INDICES_KEPT,
)


@operation()
def sort(x: Tensor, dim: int, descending: bool = False) -> Tensor:
    """The elements in order along `dim`; nan is the largest, as it is for `max`."""
    return unary(SORT, x, (positive_dim(x, dim), descending))


@method()
def argsort(x: Tensor, dim: int, descending: bool = False) -> Array:
    """Where each element of the sorted tensor comes from, as the backend's integers: no node."""
    order: Array = x.device.namespace.argsort(x.value, positive_dim(x, dim), descending)
    return order


@method()
def sort_with_indices(x: Tensor, dim: int, descending: bool = False) -> tuple[Tensor, Array]:
    """The elements in order along `dim`, and where each comes from."""
    return sort(x, dim, descending), argsort(x, dim, descending)


@method()
def topk_with_indices(x: Tensor, k: int, dim: int) -> tuple[Tensor, Array]:
    """The `k` largest elements along `dim` in falling order, and where they are: sort, select.

    Raises:
        ShapeError: there are not so many.
    """
    namespace = x.device.namespace
    axis = positive_dim(x, dim)
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            f"`topk_with_indices` cannot take {k} of dim {axis} of shape {list(x.shape)}"
        )
    ordered, order = sort_with_indices(x, dim, descending=True)
    first = (slice(None),) * axis + (slice(k),)
    largest = unary(SELECT, ordered, (axis, namespace.arange(k)))
    return largest, namespace.take_slices(order, first)
