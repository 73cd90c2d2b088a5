"""Fourier transforms of real numbers: compute bound, keep nothing.

A real and an imaginary tensor stand for the complex one, k = 0 to n / 2 along the dim.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`: rfft is one node that holds both on dim 0,
and two slices of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.apply import many, unary
from ckptcli.autodiff.op import LEFT_TRACKED, RIGHT_TRACKED, Op, Shape
from ckptcli.autodiff.ops.slice import slice_tensor
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound


def _halves(xp: Any, parts: Any) -> tuple[Any, Any]:
    rows = parts.shape[0] // 2
    return (
        xp.take_slices(parts, (slice(0, rows),)),
        xp.take_slices(parts, (slice(rows, None),)),
    )


def _weights(xp: Any, like: Any, length: int, dim: int, scale: float) -> Any:
    """How often each frequency counts in the whole spectrum, times `scale`, along `dim`."""
    count = length // 2 + 1
    twice = [2.0 * scale] * count
    twice[0] = scale
    if length % 2 == 0:
        twice[-1] = scale
    sizes = [1] * len(like.shape)
    sizes[dim] = count
    return xp.reshape(xp.array_like(twice, like), tuple(sizes))


def _rfft_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    length, dim = step.state, step.params
    real, imaginary = _halves(xp, grad)
    weights = _weights(xp, grad, length, dim, 1.0 / length)
    return xp.irfft(xp.divide(real, weights), xp.divide(imaginary, weights), length, dim)


def _irfft_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    length, dim = step.params
    real, imaginary = _halves(xp, xp.rfft(grad, dim))
    weights = _weights(xp, grad, length, dim, 1.0 / length)
    return (
        xp.multiply(real, weights) if step.mask & LEFT_TRACKED else None,
        xp.multiply(imaginary, weights) if step.mask & RIGHT_TRACKED else None,
    )


def _flops(operands: Sequence[Shape], output: Shape) -> int:
    size = math.prod(operands[0])
    return 5 * size * max(1, size.bit_length())


RFFT = Op(
    "rfft",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dim: xp.rfft(x, dim),
    backward=_rfft_gradient,
    state=lambda xp, out, x, dim: x.shape[dim],
    flops=_flops,
)
IRFFT = Op(
    "irfft",
    Bound.COMPUTE,
    2,
    forward=lambda xp, real, imaginary, params: xp.irfft(real, imaginary, *params),
    backward=_irfft_gradient,
    flops=_flops,
)


@method()
def rfft(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part of the transform along `dim`: three nodes."""
    axis = positive_dim(x, dim)
    parts = unary(RFFT, x, axis)
    rows = parts.shape[0] // 2
    return slice_tensor(parts, slice(0, rows)), slice_tensor(parts, slice(rows, 2 * rows))


@operation()
def irfft(real: Tensor, imaginary: Tensor, dim: int, length: int | None = None) -> Tensor:
    """The `length` real numbers whose `rfft` this is; an even number by default.

    Raises:
        ShapeError: the parts differ in shape, or `length` does not belong to their size.
    """
    axis = positive_dim(real, dim)
    count = real.shape[axis]
    size = 2 * (count - 1) if length is None else length
    if real.shape != imaginary.shape or size < 1 or size // 2 + 1 != count:
        shapes = f"{list(real.shape)} and {list(imaginary.shape)}"
        raise ShapeError(f"`irfft` cannot give {size} numbers from parts {shapes}")
    return many(IRFFT, [real, imaginary], (size, axis))
