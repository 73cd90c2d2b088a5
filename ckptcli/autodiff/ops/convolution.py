"""Convolutions of one, two and three dims, and transposed ones. Compute bound.

x is [batch, channels, *size]; weight is [outputs, inputs / groups, *kernel], transposed
[inputs, outputs / groups, *kernel]; bias is [outputs]. A convolution is a matrix product with the
windows of x as columns; a transposed one is its adjoint.

As in Burn, all operands are checkpointed, whichever is tracked.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`; the padding of transposed convolutions,
`burn-backend/src/backend/ops/modules/conv.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.apply import many
from ckptcli.autodiff.op import KEEPS_ALL, Op, Shape
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.spatial import Sizes, for_each
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import Window, fold, pad, windows
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound
from ckptcli.units import count

X_TRACKED, WEIGHT_TRACKED, BIAS_TRACKED = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a kernel moves over an input."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    padding_out: tuple[int, ...]

    def windows(self, kernel: Shape) -> list[Window]:
        return [Window(*sizes) for sizes in zip(kernel, self.stride, self.dilation)]


def _columns(xp: Any, x: Any, kernel: Shape, geometry: Geometry) -> Any:
    """[batch, groups, channels a group * kernel, outputs a channel]."""
    x = pad(xp, x, geometry.padding, geometry.padding)
    rank = len(kernel)
    for axis, window in enumerate(geometry.windows(kernel)):
        x = windows(xp, x, 2 + axis, window)
    batch, channels = x.shape[:2]
    places = x.shape[2 : 2 + rank]
    x = xp.permute_dims(x, (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))
    rows = channels // geometry.groups * math.prod(kernel)
    return xp.reshape(x, (batch, geometry.groups, rows, math.prod(places)))


def _from_columns(
    xp: Any, columns: Any, places: Shape, kernel: Shape, geometry: Geometry, size: Shape
) -> Any:
    """The adjoint of `_columns`, for an input of `size`."""
    rank = len(kernel)
    channels = columns.shape[1] * columns.shape[2] // math.prod(kernel)
    x = xp.reshape(columns, (columns.shape[0], channels, *kernel, *places))
    x = xp.permute_dims(x, (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))
    moves = geometry.windows(kernel)
    for axis in reversed(range(rank)):
        length = size[axis] + 2 * geometry.padding[axis]
        x = fold(xp, x, 2 + axis, moves[axis], length)
    middle = tuple(slice(p, p + length) for p, length in zip(geometry.padding, size))
    return xp.take_slices(x, (slice(None), slice(None), *middle))


def by_group(xp: Any, array: Any, geometry: Geometry) -> Any:
    """[batch, channels, *places] as [batch, groups, channels a group, places]."""
    batch, channels = array.shape[:2]
    shape = (batch, geometry.groups, channels // geometry.groups, math.prod(array.shape[2:]))
    return xp.reshape(array, shape)


def weight_matrix(xp: Any, weight: Any, groups: int) -> Any:
    """[groups, first a group, second * kernel]."""
    first = weight.shape[0] // groups
    return xp.reshape(weight, (groups, first, math.prod(weight.shape[1:])))


def _convolve(xp: Any, x: Any, weight: Any, geometry: Geometry) -> Any:
    kernel = weight.shape[2:]
    places = places_of(x.shape[2:], kernel, geometry)  # refuses a kernel before anything is padded
    columns = _columns(xp, x, kernel, geometry)
    product = xp.matmul(weight_matrix(xp, weight, geometry.groups), columns)
    return xp.reshape(product, (x.shape[0], weight.shape[0], *places))


def places_of(size: Shape, kernel: Shape, geometry: Geometry) -> Shape:
    """How often the kernel fits along each axis.

    Raises:
        ValueError: not once.
    """
    moves = geometry.windows(kernel)
    return tuple(w.count(n + 2 * p) for w, n, p in zip(moves, size, geometry.padding))


def _convolve_adjoint(xp: Any, grad: Any, weight: Any, geometry: Geometry, size: Shape) -> Any:
    """What `_convolve` makes of an input of `size`, backwards."""
    matrix = xp.matrix_transpose(weight_matrix(xp, weight, geometry.groups))
    columns = xp.matmul(matrix, by_group(xp, grad, geometry))
    return _from_columns(xp, columns, grad.shape[2:], weight.shape[2:], geometry, size)


def _weight_gradient(xp: Any, x: Any, grad: Any, weight_shape: Shape, geometry: Geometry) -> Any:
    """The gradient of the weight of the convolution that made `grad`'s array of x."""
    columns = _columns(xp, x, weight_shape[2:], geometry)
    product = xp.matmul(by_group(xp, grad, geometry), xp.matrix_transpose(columns))
    return xp.reshape(xp.sum_dim(product, 0), weight_shape)


def bias_added(xp: Any, out: Any, bias: Any) -> Any:
    """One number a channel added."""
    if tuple(bias.shape) != (out.shape[1],):
        raise ValueError(f"a bias of shape {list(bias.shape)} for {out.shape[1]} channels")
    return xp.add(out, xp.reshape(bias, (1, -1, *[1] * (len(out.shape) - 2))))


def bias_gradient(xp: Any, grad: Any) -> Any:
    """The sum over everything but the channels."""
    batch, channels = grad.shape[:2]
    flat = xp.reshape(grad, (batch, channels, math.prod(grad.shape[2:])))
    return xp.reshape(xp.sum_dim(xp.sum_dim(flat, 2), 0), (channels,))


def _conv(xp: Any, x: Any, weight: Any, *bias_and_geometry: Any) -> Any:
    geometry = bias_and_geometry[-1]
    check_channels(x.shape[1], weight.shape[1] * geometry.groups, weight.shape[0], geometry)
    out = _convolve(xp, x, weight, geometry)
    return bias_added(xp, out, bias_and_geometry[0]) if len(bias_and_geometry) == 2 else out


def _conv_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    geometry = step.params
    x, weight = kept[:2]
    x_grad = weight_grad = bias_grad = None
    if step.mask & X_TRACKED:
        x_grad = _convolve_adjoint(xp, grad, weight, geometry, x.shape[2:])
    if step.mask & WEIGHT_TRACKED:
        weight_grad = _weight_gradient(xp, x, grad, weight.shape, geometry)
    if step.mask & BIAS_TRACKED:
        bias_grad = bias_gradient(xp, grad)
    return (x_grad, weight_grad, bias_grad)[: len(step.parents)]


def _transposed_size(size: Shape, kernel: Shape, geometry: Geometry) -> Shape:
    moves = geometry.windows(kernel)
    for window in moves:
        window.check()
    return tuple(
        (n - 1) * w.stride - 2 * p + w.span + out
        for n, w, p, out in zip(size, moves, geometry.padding, geometry.padding_out)
    )


def _conv_transpose(xp: Any, x: Any, weight: Any, *bias_and_geometry: Any) -> Any:
    geometry = bias_and_geometry[-1]
    check_channels(x.shape[1], weight.shape[0], weight.shape[0], geometry)
    size = _transposed_size(x.shape[2:], weight.shape[2:], geometry)
    if any(out >= stride for out, stride in zip(geometry.padding_out, geometry.stride)):
        raise ValueError("padding_out must be smaller than the stride")
    if min(size) < 1:
        raise ValueError(f"the output would have size {list(size)}")
    out = _convolve_adjoint(xp, x, weight, geometry, size)
    return bias_added(xp, out, bias_and_geometry[0]) if len(bias_and_geometry) == 2 else out


def _conv_transpose_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """The adjoint of an adjoint: x gets a convolution of the gradient."""
    geometry = step.params
    x, weight = kept[:2]
    x_grad = weight_grad = bias_grad = None
    places = x.shape[2:]
    columns = _columns(xp, grad, weight.shape[2:], geometry)
    if step.mask & X_TRACKED:
        product = xp.matmul(weight_matrix(xp, weight, geometry.groups), columns)
        x_grad = xp.reshape(product, (x.shape[0], x.shape[1], *places))
    if step.mask & WEIGHT_TRACKED:
        product = xp.matmul(by_group(xp, x, geometry), xp.matrix_transpose(columns))
        weight_grad = xp.reshape(xp.sum_dim(product, 0), weight.shape)
    if step.mask & BIAS_TRACKED:
        bias_grad = bias_gradient(xp, grad)
    return (x_grad, weight_grad, bias_grad)[: len(step.parents)]


def check_channels(channels: int, weight_channels: int, outputs: int, geometry: Geometry) -> None:
    """The channels of x and the outputs divide into the weight's groups.

    Raises:
        ValueError: they do not.
    """
    groups = geometry.groups
    if groups < 1 or channels != weight_channels or channels % groups or outputs % groups:
        parts = count(groups, "group")
        raise ValueError(f"the weight does not fit {count(channels, 'channel')} in {parts}")


def _flops(operands: Sequence[Shape], output: Shape) -> int:
    return 2 * math.prod(output) * math.prod(operands[1][1:])


def _transposed_flops(operands: Sequence[Shape], output: Shape) -> int:
    return 2 * math.prod(operands[0]) * math.prod(operands[1][1:])


def _declared(dims: int) -> Op:
    return Op(
        f"conv{dims}d", Bound.COMPUTE, 0, _conv, _conv_gradient, keeps=KEEPS_ALL, flops=_flops
    )


def _declared_transposed(dims: int) -> Op:
    return Op(
        f"conv_transpose{dims}d",
        Bound.COMPUTE,
        0,
        _conv_transpose,
        _conv_transpose_gradient,
        keeps=KEEPS_ALL,
        flops=_transposed_flops,
    )


CONV1D, CONV2D, CONV3D = (_declared(dims) for dims in (1, 2, 3))
CONV_TRANSPOSE1D, CONV_TRANSPOSE2D, CONV_TRANSPOSE3D = (
    _declared_transposed(dims) for dims in (1, 2, 3)
)


def _apply(op: Op, dims: int, operands: Sequence[Tensor | None], options: Sequence[Any]) -> Tensor:
    present = [operand for operand in operands if operand is not None]
    for operand in present[:2]:
        if len(operand.shape) != dims + 2:
            raise ShapeError(
                f"`{op.name}` needs x and weight of rank {dims + 2}, got {list(operand.shape)}"
            )
    stride, padding, dilation, groups, padding_out = options
    geometry = Geometry(
        for_each("stride", stride, dims),
        for_each("padding", padding, dims),
        for_each("dilation", dilation, dims),
        groups,
        for_each("padding_out", padding_out, dims),
    )
    return many(op, present, geometry)


@operation()
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over the last dim."""
    return _apply(CONV1D, 1, (x, weight, bias), (stride, padding, dilation, groups, 0))


@operation()
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over the last two dims."""
    return _apply(CONV2D, 2, (x, weight, bias), (stride, padding, dilation, groups, 0))


@operation()
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over the last three dims."""
    return _apply(CONV3D, 3, (x, weight, bias), (stride, padding, dilation, groups, 0))


@operation()
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    padding_out: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution over the last dim."""
    options = (stride, padding, dilation, groups, padding_out)
    return _apply(CONV_TRANSPOSE1D, 1, (x, weight, bias), options)


@operation()
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    padding_out: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution over the last two dims."""
    options = (stride, padding, dilation, groups, padding_out)
    return _apply(CONV_TRANSPOSE2D, 2, (x, weight, bias), options)


@operation()
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    padding_out: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution over the last three dims."""
    options = (stride, padding, dilation, groups, padding_out)
    return _apply(CONV_TRANSPOSE3D, 3, (x, weight, bias), options)
