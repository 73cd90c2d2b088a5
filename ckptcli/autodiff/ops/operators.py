"""Python's operators on tensors.

An array of bools, such as `x == 1.0` gives, is an operand like a number: a constant of 0 and 1.
"""

from __future__ import annotations

from typing import Any

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.numbers import is_mask, number
from ckptcli.autodiff.op import Op
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
from ckptcli.autodiff.ops.powers import POWF, powf_scalar
from ckptcli.autodiff.tensor import Tensor, method, new_leaf
from ckptcli.backends.base import Array
from ckptcli.errors import DeviceError, ShapeError


def _counted(x: Tensor, mask: Any) -> Tensor:
    """A mask as a constant of 0 and 1 of x's dtype."""
    namespace = x.device.namespace
    return new_leaf(namespace.astype(namespace.asbool(mask), x.dtype), x.device, tracked=0)


def _with(op: Op, scalar_op: Op, sign: str, x: Tensor, other: Any) -> Tensor:
    """`x sign other` for an operand that is no tensor."""
    if type(other) is not float and is_mask(other) and other.ndim:
        return binary(op, x, _counted(x, other))
    return unary(scalar_op, x, number(other, sign))


@method()
def __add__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(ADD, self, other)
    return _with(ADD, ADD_SCALAR, "+", self, other)


@method()
def __radd__(self: Tensor, other: float) -> Tensor:
    return _with(ADD, ADD_SCALAR, "+", self, other)


@method()
def __sub__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(SUB, self, other)
    return _with(SUB, SUB_SCALAR, "-", self, other)


@method()
def __rsub__(self: Tensor, other: float) -> Tensor:
    return _with(ADD, ADD_SCALAR, "-", unary(NEG, self), other)


@method()
def __mul__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(MUL, self, other)
    return _with(MUL, MUL_SCALAR, "*", self, other)


@method()
def __rmul__(self: Tensor, other: float) -> Tensor:
    return _with(MUL, MUL_SCALAR, "*", self, other)


@method()
def __truediv__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(DIV, self, other)
    return _with(DIV, DIV_SCALAR, "/", self, other)


@method()
def __rtruediv__(self: Tensor, other: float) -> Tensor:
    return _with(MUL, MUL_SCALAR, "/", unary(RECIP, self), other)


@method()
def __mod__(self: Tensor, other: Tensor | float) -> Tensor:
    if isinstance(other, Tensor):
        return binary(REMAINDER, self, other)
    return _with(REMAINDER, REMAINDER_SCALAR, "%", self, other)


@method()
def __pow__(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, Tensor):
        return binary(POWF, self, other)
    if is_mask(other) and other.ndim:
        return binary(POWF, self, _counted(self, other))
    return powf_scalar(self, number(other, "**"))


def _compared(name: str, sign: str, x: Tensor, other: Any) -> Array:
    """A mask of the backend, element by element: no node, no id."""
    backend, namespace = x.device.backend, x.device.namespace
    operand = _compared_with(sign, x, other)
    try:
        mask: Array = getattr(namespace, name)(x.value, operand)
    except backend.operand_errors as error:
        shapes = f"{list(x.shape)} and {list(operand.shape)}"
        raise ShapeError(f"`{sign}` cannot compare shapes {shapes}") from error
    return mask


def _compared_with(sign: str, x: Tensor, other: Any) -> Any:
    """The array or the number that stands on the other side."""
    if isinstance(other, Tensor):
        if other.device.backend.label != x.device.backend.label:
            raise DeviceError(
                f"`{sign}` got tensors on different devices: {x.device} and {other.device}",
                "create both on the same device",
            )
        return other.value
    if is_mask(other) and other.ndim:
        return x.device.namespace.astype(x.device.namespace.asbool(other), x.dtype)
    return number(other, sign)


@method()
def __eq__(self: Tensor, other: Any) -> Array:
    return _compared("equal", "==", self, other)


@method()
def __ne__(self: Tensor, other: Any) -> Array:
    return _compared("not_equal", "!=", self, other)


@method()
def __gt__(self: Tensor, other: Any) -> Array:
    return _compared("greater", ">", self, other)


@method()
def __lt__(self: Tensor, other: Any) -> Array:
    return _compared("less", "<", self, other)


@method()
def __ge__(self: Tensor, other: Any) -> Array:
    return _compared("greater_equal", ">=", self, other)


@method()
def __le__(self: Tensor, other: Any) -> Array:
    return _compared("less_equal", "<=", self, other)
