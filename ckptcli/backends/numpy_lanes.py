"""NumPy's namespace with large element-wise calls on several lanes.

One rule for all: what computes each element from those at the same place of its operands, and takes
longer for it than memory does, is cut where the arrays are large and lie alike without a gap. Sums,
products and comparisons are not: memory sets their pace, and one lane reaches it.

Invariant: bits, layout, memory and warnings are those of the call on one lane. A part is a whole
number of registers, so that each element is computed by the same of NumPy's loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
from numpy import ndarray

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Namespace
from ckptcli.backends.lanes import can_share, share
from ckptcli.backends.numpy_blocks import parts_of
from ckptcli.backends.numpy_special import IN_BLOCKS

AnyArray = ndarray[Any, Any]

LARGE_ELEMENTS = 2**21
"""One step of fewer is done before a thread has woken; `numpy_blocks` has the bound for several."""

PART_ELEMENTS = 2**17
"""What a lane takes at a time."""

_COMPUTING: frozenset[np.ufunc] = frozenset(
    {
        *(np.exp, np.expm1, np.log, np.log1p, np.power),
        *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2),
        *(np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh),
    }
)
"""Functions that take longer to compute an element than memory does to bring it."""


def on_lanes(lanes: int) -> Namespace:
    """NumPy's namespace, large element-wise calls on so many lanes."""
    names = {
        name: _on_lanes(value, lanes)
        for name, value in vars(numpy_namespace).items()
        if not name.startswith("_")
    }
    return cast(Namespace, SimpleNamespace(**names))


def _on_lanes(value: Any, lanes: int) -> Any:
    if isinstance(value, np.ufunc) and value in _COMPUTING:
        return _of_one(value, lanes) if value.nin == 1 else _of_two(value, lanes)
    return partial(value, lanes=lanes) if callable(value) and value in IN_BLOCKS else value


def _of_one(function: np.ufunc, lanes: int) -> Callable[..., Any]:
    def call(x: AnyArray, out: AnyArray | None = None) -> Any:
        if x.size >= LARGE_ELEMENTS and can_share(lanes):
            return _spread(function, (x,), out, lanes)
        return function(x, out)

    return call


def _of_two(function: np.ufunc, lanes: int) -> Callable[..., Any]:
    def call(x: Any, y: Any, out: AnyArray | None = None) -> Any:
        size = x.size if x.__class__ is ndarray else y.size
        if size >= LARGE_ELEMENTS and can_share(lanes):
            return _spread(function, (x, y), out, lanes)
        return function(x, y, out)

    return call


def _spread(function: np.ufunc, operands: tuple[Any, ...], out: AnyArray | None, lanes: int) -> Any:
    """The call in parts that each write elements of their own; as a whole where it has none."""
    arrays = [operand for operand in operands if isinstance(operand, ndarray)]
    order = _common_order(arrays if out is None else [*arrays, out])
    if order is None or not _can_cut(operands, arrays, out):
        return function(*operands, out)
    kinds = tuple(o.dtype if isinstance(o, ndarray) else type(o) for o in operands)
    result = (
        np.empty(arrays[0].shape, _result_dtype(function, kinds), order) if out is None else out
    )
    flat = [o.ravel(order) if isinstance(o, ndarray) else o for o in (*operands, result)]

    def take(lane: int, start: int, stop: int) -> None:
        del lane
        function(*[o[start:stop] if isinstance(o, ndarray) else o for o in flat])

    share(take, parts_of(result.size, PART_ELEMENTS), lanes, level=2)
    return result


def _common_order(arrays: list[AnyArray]) -> Literal["C", "F"] | None:
    """The order in which all lie without a gap, in one shape; None where there is none."""
    orders: tuple[Literal["C", "F"], ...] = ("C", "F")
    for order in orders:
        if all(a.shape == arrays[0].shape and a.flags[order] for a in arrays):
            return order
    return None


def _can_cut(operands: tuple[Any, ...], arrays: list[AnyArray], out: AnyArray | None) -> bool:
    """Whether nothing is converted, and `out` shares no memory but with an operand that is it."""
    dtype = arrays[0].dtype
    if dtype.kind != "f" or any(array.dtype is not dtype for array in arrays):
        return False
    if any(operand.__class__ not in (ndarray, float, int) for operand in operands):
        return False
    if out is None:
        return True
    if out.__class__ is not ndarray or not out.flags.writeable:
        return False
    return all(array is out or not np.may_share_memory(array, out) for array in arrays)


@cache
def _result_dtype(function: np.ufunc, kinds: tuple[Any, ...]) -> np.dtype[Any]:
    samples = [kind(1) if isinstance(kind, type) else np.empty(0, kind) for kind in kinds]
    dtype: np.dtype[Any] = function(*samples).dtype
    return dtype
