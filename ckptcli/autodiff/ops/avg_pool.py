"""Average pools over the last dims: compute bound, keep their input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.axis_maps import axis_maps_op, bin_means, window_means
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.spatial import Sizes, for_each, spatial_sizes
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import Window
from ckptcli.errors import ShapeError

AVG_POOL1D, AVG_POOL2D = axis_maps_op("avg_pool1d"), axis_maps_op("avg_pool2d")
ADAPTIVE_AVG_POOL1D, ADAPTIVE_AVG_POOL2D, ADAPTIVE_AVG_POOL3D = (
    axis_maps_op(f"adaptive_avg_pool{dims}d") for dims in (1, 2, 3)
)


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
    outputs = for_each("output_size", output_size, dims)
    if min(outputs) < 1:
        raise ShapeError(f"`{op.name}` cannot give size {list(outputs)}")
    return unary(op, x, tuple(map(bin_means, sizes, outputs)))


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
