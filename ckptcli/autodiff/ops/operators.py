"""Python's operators on tensors."""

from __future__ import annotations

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.ops.arithmetic import (
    ADD,
    ADD_SCALAR,
    DIV,
    DIV_SCALAR,
    MUL,
    MUL_SCALAR,
    NEG,
    RECIP,
    REMAINDER,
    REMAINDER_SCALAR,
    SUB,
    SUB_SCALAR,
)
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.backends.base import Array


@method()
def __add__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(ADD, self, other)
    return unary(ADD_SCALAR, self, float(other))


@method()
def __radd__(self: Tensor, other: float) -> Tensor:
    return unary(ADD_SCALAR, self, float(other))


@method()
def __sub__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(SUB, self, other)
    return unary(SUB_SCALAR, self, float(other))


@method()
def __rsub__(self: Tensor, other: float) -> Tensor:
    return unary(ADD_SCALAR, unary(NEG, self), float(other))


@method()
def __mul__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(MUL, self, other)
    return unary(MUL_SCALAR, self, float(other))


@method()
def __rmul__(self: Tensor, other: float) -> Tensor:
    return unary(MUL_SCALAR, self, float(other))


@method()
def __truediv__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(DIV, self, other)
    return unary(DIV_SCALAR, self, float(other))


@method()
def __rtruediv__(self: Tensor, other: float) -> Tensor:
    return unary(MUL_SCALAR, unary(RECIP, self), float(other))


@method()
def __mod__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(REMAINDER, self, other)
    return unary(REMAINDER_SCALAR, self, float(other))


@method()
def __gt__(self: Tensor, other: float) -> Array:
    """A mask of the backend: no node, no id."""
    mask: Array = self.device.namespace.greater(self.value, other)
    return mask


@method()
def __lt__(self: Tensor, other: float) -> Array:
    """A mask of the backend: no node, no id."""
    mask: Array = self.device.namespace.less(self.value, other)
    return mask


@method()
def __ge__(self: Tensor, other: float) -> Array:
    """A mask of the backend: no node, no id."""
    mask: Array = self.device.namespace.greater_equal(self.value, other)
    return mask


@method()
def __le__(self: Tensor, other: float) -> Array:
    """A mask of the backend: no node, no id."""
    mask: Array = self.device.namespace.less_equal(self.value, other)
    return mask
