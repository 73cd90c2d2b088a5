"""Pools whose last window reaches over the end, and bicubic interpolation, against loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli.errors import ShapeError
from tests.helpers import backward, gradient, leaf, unwatched

Array = NDArray[Any]
X = np.array([3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.0, 6.0])


def windows(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[list[int]]:
    """Positions in X of each window, those outside of it left in."""
    span = (kernel - 1) * dilation + 1
    count = math.ceil(max(0, size + 2 * padding - span) / stride) + 1
    starts = [i * stride - padding for i in range(count)]
    return [[start + j * dilation for j in range(kernel)] for start in starts]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize(("kernel", "padding"), [(1, 0), (2, 0), (2, 1), (3, 1), (4, 2)])
def test_a_pool_in_ceil_mode(kernel: int, padding: int, stride: int, size: int) -> None:
    row = X[:size]
    x = leaf(unwatched("none"), row.reshape(1, 1, size))
    for dilation in (1, 2):
        each = windows(size, kernel, stride, padding, dilation)
        inside = [[i for i in window if 0 <= i < size] for window in each]
        largest = [max((row[i] for i in window), default=-math.inf) for window in inside]
        out, indices = x.max_pool1d_with_indices(kernel, stride, padding, dilation, True)
        np.testing.assert_array_equal(out.numpy()[0, 0], largest)
        found = [
            int(np.argmax(row == value)) if window else -1 for value, window in zip(largest, inside)
        ]
        np.testing.assert_array_equal(indices[0, 0], found)
    each = windows(size, kernel, stride, padding, 1)
    sums = [sum(row[i] for i in window if 0 <= i < size) for window in each]
    for count_pad in (False, True):
        low, high = (-padding, size + padding) if count_pad else (0, size)
        counts = [max(1, sum(low <= i < high for i in window)) for window in each]
        out = x.avg_pool1d(kernel, stride, padding, count_pad, True)
        np.testing.assert_allclose(out.numpy()[0, 0], np.divide(sums, counts), rtol=1e-14)


def test_a_window_without_an_element_gives_no_gradient() -> None:
    x = leaf(unwatched("balanced"), X[:3].reshape(1, 1, 3))
    out = x.max_pool1d(1, 4, ceil_mode=True)
    np.testing.assert_array_equal(out.numpy(), [[[3.0, -np.inf]]])
    np.testing.assert_array_equal(gradient(backward(out), x), [[[1.0, 0.0, 0.0]]])


def test_both_dims_have_a_ceil_mode() -> None:
    x = leaf(unwatched("none"), X.reshape(1, 1, 2, 4))
    out = x.max_pool2d(2, [1, 3], ceil_mode=True)
    np.testing.assert_array_equal(out.numpy(), [[[[9.0, 6.0]]]])
    out = x.avg_pool2d(2, [1, 3], ceil_mode=True)
    np.testing.assert_array_equal(out.numpy(), [[[[1.5, 3.75]]]])


def kernel(distance: float) -> float:
    """The piecewise cubic with slope -0.75 at 1 and value 0 at every other whole number."""
    t = abs(distance)
    if t < 1.0:
        return 1.25 * t**3 - 2.25 * t**2 + 1.0
    return -0.75 * t**3 + 3.75 * t**2 - 6.0 * t + 3.0 if t < 2.0 else 0.0


@pytest.mark.sampled(5)
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("outputs", [(1, 1), (2, 3), (4, 5), (9, 11)])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 7)])
def test_bicubic(size: tuple[int, int], outputs: tuple[int, int], align_corners: bool) -> None:
    image = np.random.Generator(np.random.PCG64(5)).normal(size=size)
    expected = np.zeros(outputs)
    for y, x in np.ndindex(*outputs):
        places = []
        for index, length, count in zip((y, x), size, outputs):
            aligned = index * (length - 1) / max(1, count - 1)
            places.append(aligned if align_corners else (index + 0.5) * length / count - 0.5)
        for row in range(-4, size[0] + 4):
            for column in range(-4, size[1] + 4):
                share = kernel(places[0] - row) * kernel(places[1] - column)
                inside = np.clip([row, column], 0, np.array(size) - 1)
                expected[y, x] += share * image[inside[0], inside[1]]
    dev = unwatched("none")
    out = leaf(dev, image[None, None]).interpolate(list(outputs), "bicubic", align_corners)
    np.testing.assert_allclose(out.numpy()[0, 0], expected, rtol=1e-11, atol=1e-12)


def test_a_mode_that_there_is_not() -> None:
    x = leaf(unwatched("none"), X.reshape(1, 1, 2, 4))
    with pytest.raises(ShapeError, match="use nearest or bilinear or bicubic"):
        x.interpolate([2, 2], "cubic")
