"""Interpolation over the last two dims: compute bound, keeps its input.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.axis_maps import AxisMap, axis_maps_op, cubic, linear, nearest
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.spatial import for_each, spatial_sizes
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError

MODES: dict[str, Callable[[int, int, bool], AxisMap]] = {
    "nearest": lambda length, outputs, align_corners: nearest(length, outputs),
    "bilinear": linear,
    "bicubic": cubic,
}
"""Mode -> the map of one axis: size, outputs, whether first and last elements stay."""
INTERPOLATE = axis_maps_op("interpolate")


@operation()
def interpolate(
    x: Tensor, output_size: Sequence[int], mode: str, align_corners: bool = True
) -> Tensor:
    """The last two dims resized; `mode` is nearest, bilinear or bicubic.

    Burn's is nan beside an infinite neighbour whose weight is 0; here that has no part in it.
    """
    sizes = spatial_sizes(x, 2, "interpolate")
    if mode not in MODES:
        raise ShapeError(f"`interpolate` has no mode `{mode}`", f"use {' or '.join(MODES)}")
    outputs = for_each("output_size", output_size, 2)
    if min(outputs) < 1:
        raise ShapeError(f"`interpolate` cannot give size {list(outputs)}")
    maps = [MODES[mode](*each, align_corners) for each in zip(sizes, outputs)]
    return unary(INTERPOLATE, x, tuple(maps))
