"""The sizes of images and volumes: the dims behind batch and channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError

Sizes: TypeAlias = int | Sequence[int]
"""One number for every dim, or one for each."""


def for_each(argument: str, sizes: Sizes, dims: int) -> tuple[int, ...]:
    """One number for each of `dims` dims; `argument` is what the sizes were given as.

    Raises:
        ShapeError: another count of numbers, or a padding below 0.
    """
    each = (sizes,) * dims if isinstance(sizes, int) else tuple(sizes)
    if len(each) != dims:
        raise ShapeError(
            f"`{argument}` is {list(each)} for {dims} dim(s)",
            "give one number, or one for each dim",
        )
    if argument.startswith("padding") and min(each) < 0:
        raise ShapeError(f"`{argument}` is {list(each)}", "slice the tensor to make it smaller")
    return each


def spatial_sizes(x: Tensor, dims: int, name: str) -> tuple[int, ...]:
    """The last `dims` sizes of x, which has two dims before them.

    Raises:
        ShapeError: the tensor has another rank, or no elements along one of them.
    """
    if len(x.shape) != dims + 2 or not all(x.shape[2:]):
        raise ShapeError(f"`{name}` needs rank {dims + 2} and no empty dim, got {list(x.shape)}")
    return x.shape[2:]
