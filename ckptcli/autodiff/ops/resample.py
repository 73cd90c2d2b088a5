"""Average pools and interpolation over the last dims: compute bound, keep their input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op
from ckptcli.autodiff.ops.convolution import Sizes, for_each
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.resampling import (
    Matrix,
    apply_maps,
    bin_means,
    cubic,
    linear,
    nearest,
    window_means,
)
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import Window
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

MODES: dict[str, Callable[[int, int, bool], Matrix]] = {
    "nearest": lambda length, outputs, align_corners: nearest(length, outputs),
    "bilinear": linear,
    "bicubic": cubic,
}
"""Mode -> the map of one axis: size, outputs, whether first and last elements stay."""


def _resample_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Linear, so the input that Burn keeps is not looked at."""
    return apply_maps(xp, grad, step.params, transposed=True)


def _declared(name: str) -> Op:
    return Op(
        name,
        Bound.COMPUTE,
        1,
        forward=lambda xp, x, maps: apply_maps(xp, x, maps),
        backward=_resample_gradient,
        keeps=KEEPS_INPUT,
        flops=lambda operands, output: 2 * math.prod(operands[0]),
    )


AVG_POOL1D, AVG_POOL2D = _declared("avg_pool1d"), _declared("avg_pool2d")
ADAPTIVE_AVG_POOL1D, ADAPTIVE_AVG_POOL2D, ADAPTIVE_AVG_POOL3D = (
    _declared(f"adaptive_avg_pool{dims}d") for dims in (1, 2, 3)
)
INTERPOLATE = _declared("interpolate")


def spatial_sizes(x: Tensor, dims: int, name: str) -> tuple[int, ...]:
    """The last `dims` sizes of x, which has two dims before them.

    Raises:
        ShapeError: the tensor has another rank, or no elements along one of them.
    """
    if len(x.shape) != dims + 2 or not all(x.shape[2:]):
        raise ShapeError(f"`{name}` needs rank {dims + 2} and no empty dim, got {list(x.shape)}")
    return x.shape[2:]


def _avg_pool(
    op: Op,
    dims: int,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_pad: bool,
    ceil_mode: bool,
) -> Tensor:
    maps = []
    sizes = spatial_sizes(x, dims, op.name)
    each = zip(
        sizes,
        for_each("kernel_size", kernel, dims),
        for_each("stride", stride, dims),
        for_each("padding", padding, dims),
    )
    for length, size, step, zeros in each:
        try:
            maps.append(window_means(length, Window(size, step), zeros, count_pad, ceil_mode))
        except ValueError as error:
            raise ShapeError(f"`{op.name}` cannot take shape {list(x.shape)}: {error}") from error
    return unary(op, x, tuple(maps))


def _adaptive(op: Op, dims: int, x: Tensor, output_size: Sizes) -> Tensor:
    sizes = spatial_sizes(x, dims, op.name)
    wanted = for_each("output_size", output_size, dims)
    if min(wanted) < 1:
        raise ShapeError(f"`{op.name}` cannot give size {list(wanted)}")
    return unary(op, x, tuple(map(bin_means, sizes, wanted)))


@operation()
def avg_pool1d(
    x: Tensor,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window over the last dim."""
    return _avg_pool(AVG_POOL1D, 1, x, kernel_size, stride, padding, count_include_pad, ceil_mode)


@operation()
def avg_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window over the last two dims."""
    return _avg_pool(AVG_POOL2D, 2, x, kernel_size, stride, padding, count_include_pad, ceil_mode)


@operation()
def adaptive_avg_pool1d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` bins of the last dim."""
    return _adaptive(ADAPTIVE_AVG_POOL1D, 1, x, output_size)


@operation()
def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` bins of the last two dims."""
    return _adaptive(ADAPTIVE_AVG_POOL2D, 2, x, output_size)


@operation()
def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` bins of the last three dims."""
    return _adaptive(ADAPTIVE_AVG_POOL3D, 3, x, output_size)


@operation()
def interpolate(
    x: Tensor, output_size: Sequence[int], mode: str, align_corners: bool = True
) -> Tensor:
    """The last two dims resized; `mode` is nearest, bilinear or bicubic."""
    sizes = spatial_sizes(x, 2, "interpolate")
    if mode not in MODES:
        raise ShapeError(f"`interpolate` has no mode `{mode}`", f"use {' or '.join(MODES)}")
    maps: list[Matrix] = []
    for length, outputs in zip(sizes, for_each("output_size", output_size, 2)):
        if outputs < 1:
            raise ShapeError(f"`interpolate` cannot give size {list(output_size)}")
        maps.append(MODES[mode](length, outputs, align_corners))
    return unary(INTERPOLATE, x, tuple(maps))
