"""The deformable convolution: a kernel whose every element looks where an offset says.

x is [batch, channels, *size]; offset is [batch, 2 * elements, *places], elements being those of the
kernel for each offset group, and y before x; weight is [outputs, channels / weight groups,
*kernel]; mask, which multiplies what is sampled, is [batch, elements, *places]; bias is [outputs].
Between elements of x it is bilinear, around x it is zero.

As in Burn, all operands are checkpointed, whichever is tracked.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.apply import many
from ckptcli.autodiff.op import KEEPS_ALL_OF_FIVE, Op, Shape
from ckptcli.autodiff.ops.convolution import (
    Geometry,
    bias_added,
    bias_gradient,
    by_group,
    check_channels,
    places_of,
    weight_matrix,
)
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import put_at, take_at
from ckptcli.autodiff.spatial import Sizes, for_each
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import pad
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound
from ckptcli.units import count

MARGIN = 2
"""Zeros on each side of x, so that both neighbours of a place outside are zeros."""


@dataclass(frozen=True, slots=True)
class Deformation:
    """How the kernel moves, what shares an offset, and which operands there are."""

    geometry: Geometry
    offset_groups: int
    has_mask: bool
    has_bias: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One of the two elements of an axis that a place lies between.

    Attributes:
        index: where it is along the axis, the margin counted.
        share: what it contributes.
        slope: how that grows with the place.
    """

    index: Any
    share: Any
    slope: float


def _neighbours(xp: Any, place: Any, size: int) -> tuple[Neighbour, Neighbour]:
    """nan stays in the shares; what is further out than the margin is moved into it."""
    inside = xp.minimum(xp.maximum(place, -MARGIN), size)
    low = xp.floor(xp.where(xp.equal(inside, inside), inside, 0.0))
    share = xp.subtract(inside, low)
    index = xp.add(xp.astype(low, "int64"), MARGIN)
    before = Neighbour(index, xp.subtract(1.0, share), -1.0)
    return before, Neighbour(xp.add(index, 1), share, 1.0)


def _grid(xp: Any, offset: Any, axis: int, kernel: Shape, geometry: Geometry) -> Any:
    """Where a kernel without offsets looks along an axis: [elements of the kernel, *places]."""
    shape = [1] * 4
    shape[axis] = kernel[axis]
    step = xp.multiply(xp.arange(kernel[axis]), geometry.dilation[axis])
    element = xp.reshape(step, tuple(shape))
    shape = [1] * 4
    shape[2 + axis] = offset.shape[2 + axis]
    start = xp.multiply(xp.arange(offset.shape[2 + axis]), geometry.stride[axis])
    place = xp.subtract(xp.reshape(start, tuple(shape)), geometry.padding[axis])
    whole = xp.broadcast_to(xp.add(element, place), (*kernel, *offset.shape[2:]))
    return xp.reshape(whole, (math.prod(kernel), math.prod(offset.shape[2:])))


class Samples:
    """What the elements of the kernel see of x, and the way back.

    Arrays are [batch, offset groups, channels a group, elements of the kernel, places].
    """

    def __init__(self, xp: Any, x: Any, offset: Any, kernel: Shape, how: Deformation) -> None:
        self.xp = xp
        self.size = x.shape[2:]
        self.padded = pad(xp, x, (MARGIN, MARGIN), (MARGIN, MARGIN))
        batch, channels = x.shape[:2]
        groups, elements = how.offset_groups, math.prod(kernel)
        places = math.prod(offset.shape[2:])
        self.shape = (batch, groups, channels // groups, elements, places)
        planes = xp.reshape(xp.arange(batch * channels), (*self.shape[:3], 1, 1))
        height, self.width = self.padded.shape[2:]
        self.planes = xp.multiply(planes, height * self.width)
        each = xp.reshape(offset, (batch, groups, elements, 2, places))
        self.axes = []
        for axis in (0, 1):
            along = xp.take_slices(each, (..., slice(axis, axis + 1), slice(None)))
            along = xp.reshape(along, (batch, groups, 1, elements, places))
            grid = xp.astype(_grid(xp, offset, axis, kernel, how.geometry), xp.dtype_name(offset))
            self.axes.append(_neighbours(xp, xp.add(along, grid), self.size[axis]))

    def corners(self) -> Iterator[tuple[Neighbour, Neighbour, Any]]:
        """The four elements around each place: the row, the column, positions in flat memory."""
        for row in self.axes[0]:
            for column in self.axes[1]:
                inner = self.xp.add(self.xp.multiply(row.index, self.width), column.index)
                yield row, column, self.xp.add(self.planes, inner)

    def value(self) -> Any:
        xp = self.xp
        total = xp.zeros(self.shape, self.padded)
        for row, column, positions in self.corners():
            seen = take_at(xp, self.padded, positions, self.shape)
            total = xp.add(total, xp.multiply(seen, xp.multiply(row.share, column.share)))
        return total

    def x_gradient(self, grad: Any) -> Any:
        xp = self.xp
        total = xp.zeros(self.padded.shape, self.padded)
        for row, column, positions in self.corners():
            share = xp.multiply(row.share, column.share)
            total = put_at(xp, total, positions, xp.multiply(grad, share), "add")
        middle = tuple(slice(MARGIN, MARGIN + size) for size in self.size)
        return xp.take_slices(total, (slice(None), slice(None), *middle))

    def offset_gradient(self, grad: Any, shape: Shape) -> Any:
        xp = self.xp
        down, right = xp.zeros(self.shape, self.padded), xp.zeros(self.shape, self.padded)
        for row, column, positions in self.corners():
            seen = take_at(xp, self.padded, positions, self.shape)
            down = xp.add(down, xp.multiply(seen, xp.multiply(column.share, row.slope)))
            right = xp.add(right, xp.multiply(seen, xp.multiply(row.share, column.slope)))
        batch, groups, _, elements, places = self.shape
        each = (batch, groups, elements, 1, places)
        parts = [self.over_channels(xp.multiply(grad, along)) for along in (down, right)]
        return xp.reshape(xp.concat([xp.reshape(part, each) for part in parts], 3), shape)

    def over_channels(self, array: Any) -> Any:
        """The sum over the channels that share an offset."""
        return self.xp.sum_dim(array, 2)

    def masked(self, array: Any, mask: Any) -> Any:
        """`array` times the mask, one number for each element of the kernel and place."""
        batch, groups, _, elements, places = self.shape
        return self.xp.multiply(array, self.xp.reshape(mask, (batch, groups, 1, elements, places)))

    def columns(self, array: Any, groups: int) -> Any:
        """[batch, weight groups, channels a group * elements, places]."""
        batch, offset_groups, channels, elements, places = self.shape
        rows = offset_groups * channels // groups * elements
        return self.xp.reshape(array, (batch, groups, rows, places))


def _deform_conv(xp: Any, x: Any, offset: Any, weight: Any, *rest: Any) -> Any:
    how = rest[-1]
    _check(x, offset, weight, rest[0] if how.has_mask else None, how)
    samples = Samples(xp, x, offset, weight.shape[2:], how)
    value = samples.value()
    if how.has_mask:
        value = samples.masked(value, rest[0])
    groups = how.geometry.groups
    product = xp.matmul(weight_matrix(xp, weight, groups), samples.columns(value, groups))
    out = xp.reshape(product, (x.shape[0], weight.shape[0], *offset.shape[2:]))
    return bias_added(xp, out, rest[-2]) if how.has_bias else out


def _check(x: Any, offset: Any, weight: Any, mask: Any, how: Deformation) -> None:
    geometry, groups, kernel = how.geometry, how.offset_groups, weight.shape[2:]
    check_channels(x.shape[1], weight.shape[1] * geometry.groups, weight.shape[0], geometry)
    if groups < 1 or x.shape[1] % groups:
        parts = count(groups, "offset group")
        raise ValueError(f"{parts} cannot share {count(x.shape[1], 'channel')}")
    elements = groups * math.prod(kernel)
    places = places_of(x.shape[2:], kernel, geometry)
    for name, array, channels in (("offset", offset, 2 * elements), ("mask", mask, elements)):
        expected = (x.shape[0], channels, *places)
        if array is not None and array.shape != expected:
            raise ValueError(f"the {name} must have shape {list(expected)}")


def _deform_conv_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    how, tracked = step.params, [bool(step.mask >> p & 1) for p in range(len(step.parents))]
    x, offset, weight = kept[:3]
    groups = how.geometry.groups
    gradients: list[Any] = [None] * len(tracked)
    samples = Samples(xp, x, offset, weight.shape[2:], how)
    mask = kept[3] if how.has_mask else None
    seen = samples.value() if tracked[2] or mask is not None else None
    if tracked[2]:
        used = seen if mask is None else samples.masked(seen, mask)
        columns = xp.matrix_transpose(samples.columns(used, groups))
        product = xp.matmul(by_group(xp, grad, how.geometry), columns)
        gradients[2] = xp.reshape(xp.sum_dim(product, 0), weight.shape)
    if tracked[0] or tracked[1] or mask is not None:
        matrix = xp.matrix_transpose(weight_matrix(xp, weight, groups))
        inner = xp.reshape(xp.matmul(matrix, by_group(xp, grad, how.geometry)), samples.shape)
        if mask is not None:
            of_mask = samples.over_channels(xp.multiply(inner, seen))
            gradients[3] = xp.reshape(of_mask, mask.shape) if tracked[3] else None
            inner = samples.masked(inner, mask)
        gradients[0] = samples.x_gradient(inner) if tracked[0] else None
        gradients[1] = samples.offset_gradient(inner, offset.shape) if tracked[1] else None
    if how.has_bias and tracked[-1]:
        gradients[-1] = bias_gradient(xp, grad)
    return tuple(gradients)


def _flops(operands: Sequence[Shape], output: Shape) -> int:
    """The product, and what is sampled: four products and three sums each."""
    x, _, weight = operands[:3]
    sampled = math.prod(x[:2]) * math.prod(weight[2:]) * math.prod(output[2:])
    return 2 * math.prod(output) * math.prod(weight[1:]) + 7 * sampled


DEFORM_CONV2D = Op(
    "deform_conv2d",
    Bound.COMPUTE,
    0,
    _deform_conv,
    _deform_conv_gradient,
    keeps=KEEPS_ALL_OF_FIVE,
    flops=_flops,
)


@operation()
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    weight_groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """The convolution over the last two dims, each element of the kernel moved by an offset."""
    operands = [each for each in (x, offset, weight, mask) if each is not None]
    for operand in operands:
        if len(operand.shape) != 4:
            raise ShapeError(f"`deform_conv2d` needs operands of rank 4, got {list(operand.shape)}")
    geometry = Geometry(
        for_each("stride", stride, 2),
        for_each("padding", padding, 2),
        for_each("dilation", dilation, 2),
        weight_groups,
        (0, 0),
    )
    how = Deformation(geometry, offset_groups, mask is not None, bias is not None)
    return many(DEFORM_CONV2D, operands if bias is None else [*operands, bias], how)
