"""The deformable convolution against loops over every element, and where it is a plain one."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli.errors import ShapeError
from ckptcli.events import Retrieved
from tests.helpers import backward, gradient, leaf, of_type, unwatched, watched

Array = NDArray[Any]


def at(plane: Array, y: float, x: float) -> float:
    """`plane` between its elements; zero around them."""
    total = 0.0
    for row, column in product(range(plane.shape[0]), range(plane.shape[1])):
        share = max(0.0, 1.0 - abs(y - row)) * max(0.0, 1.0 - abs(x - column))
        total += share * float(plane[row, column])
    return total


def by_loops(
    x: Array, offset: Array, weight: Array, mask: Array | None, options: dict[str, Any]
) -> Array:
    stride, padding, dilation = (options[name] for name in ("stride", "padding", "dilation"))
    outputs, channels, height, width = weight.shape
    shared = x.shape[1] // options["offset_groups"]
    out = np.zeros((x.shape[0], outputs, *offset.shape[2:]))
    for n, o, r, c in np.ndindex(*out.shape):
        first = o // (outputs // options["weight_groups"]) * channels
        for i, ky, kx in np.ndindex(channels, height, width):
            element = (first + i) // shared * height * width + ky * width + kx
            y = r * stride[0] - padding[0] + ky * dilation[0] + offset[n, 2 * element, r, c]
            z = c * stride[1] - padding[1] + kx * dilation[1] + offset[n, 2 * element + 1, r, c]
            seen = at(x[n, first + i], y, z)
            factor = 1.0 if mask is None else mask[n, element, r, c]
            out[n, o, r, c] += weight[o, i, ky, kx] * factor * seen
    return out


PLAIN = {
    "stride": [1, 1],
    "padding": [0, 0],
    "dilation": [1, 1],
    "weight_groups": 1,
    "offset_groups": 1,
}
OPTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 2, 4, 5), (3, 2, 2, 3), {}),
    "one element": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "padded": ((1, 2, 3, 3), (2, 2, 3, 3), {"padding": [2, 1]}),
    "strided and dilated": ((1, 2, 6, 7), (2, 2, 2, 3), {"stride": [2, 1], "dilation": [1, 2]}),
    "grouped": ((2, 4, 4, 3), (6, 2, 2, 2), {"weight_groups": 2, "offset_groups": 4}),
    "other groups": ((1, 4, 3, 3), (4, 1, 2, 2), {"weight_groups": 4, "offset_groups": 2}),
}


def operands(
    x: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]
) -> tuple[list[Array], dict[str, Any]]:
    full = {**PLAIN, **options}
    sizes = zip(x[2:], weight[2:], full["stride"], full["padding"], full["dilation"])
    places = [(n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in sizes]
    elements = full["offset_groups"] * math.prod(weight[2:])
    rng = np.random.Generator(np.random.PCG64(3))
    shapes = (x, (x[0], 2 * elements, *places), weight, (x[0], elements, *places))
    return [rng.normal(0.0, 1.5, shape) for shape in shapes], full


@pytest.mark.parametrize("name", OPTIONS)
def test_the_output_is_that_of_loops(name: str) -> None:
    arrays, options = operands(*OPTIONS[name])
    dev = unwatched("none")
    x, offset, weight, mask = (leaf(dev, array) for array in arrays)
    bias = leaf(dev, np.arange(float(weight.shape[0])))
    out = x.deform_conv2d(offset, weight, None, None, **options)
    expected = by_loops(*arrays[:3], None, options)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-12)
    out = x.deform_conv2d(offset, weight, mask, bias, **options)
    expected = by_loops(*arrays, options) + bias.numpy().reshape(1, -1, 1, 1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["plain", "padded", "strided and dilated"])
def test_without_offsets_it_is_a_convolution(name: str) -> None:
    arrays, options = operands(*OPTIONS[name])
    moves = {key: options[key] for key in ("stride", "padding", "dilation")}
    results = []
    for offset in (None, np.zeros(arrays[1].shape)):
        dev = unwatched("balanced")
        x, weight = leaf(dev, arrays[0]), leaf(dev, arrays[2])
        if offset is None:
            out = x.conv2d(weight, None, **moves)
        else:
            out = x.deform_conv2d(leaf(dev, offset), weight, **moves)
        gradients = backward((out * out).sum())
        results.append([out.numpy(), gradient(gradients, x), gradient(gradients, weight)])
    for ours, plain in zip(*results):
        np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-12)


def sampled_at(place: float) -> tuple[float, float, float]:
    """One row of three, seen at `place`: what is seen, its slope, the gradients of the row."""
    dev = unwatched("none")
    x = leaf(dev, [[[[2.0, 3.0, 5.0]]]])
    offset = leaf(dev, np.array([0.0, place]).reshape(1, 2, 1, 1).repeat(3, axis=3))
    out = x.deform_conv2d(offset, leaf(dev, [[[[1.0]]]]))[:, :, :, 0:1]
    gradients = backward(out)
    slope = float(gradient(gradients, offset)[0, 1, 0, 0])
    return out.item(), slope, float(gradient(gradients, x).sum())


@pytest.mark.parametrize(
    ("place", "value", "slope", "share"),
    [
        (-np.inf, 0.0, 0.0, 0.0),
        (-1e30, 0.0, 0.0, 0.0),
        (-1.5, 0.0, 0.0, 0.0),
        (-0.25, 1.5, 2.0, 0.75),
        (0.0, 2.0, 1.0, 1.0),
        (1.5, 4.0, 2.0, 1.0),
        (2.75, 1.25, -5.0, 0.25),
        (3.0, 0.0, 0.0, 0.0),
        (1e300, 0.0, 0.0, 0.0),
    ],
)
def test_at_the_edges(place: float, value: float, slope: float, share: float) -> None:
    assert sampled_at(place) == (value, slope, share)


def test_an_offset_that_is_no_number_shows() -> None:
    dev = unwatched("none")
    x, weight = leaf(dev, np.ones((1, 1, 1, 2))), leaf(dev, [[[[1.0]]]])
    out = x.deform_conv2d(leaf(dev, [[[[0.0, 0.0]], [[np.nan, 0.0]]]]), weight)
    np.testing.assert_array_equal(out.numpy(), [[[[np.nan, 1.0]]]])


@pytest.mark.parametrize("given", [3, 4, 5])
def test_everything_is_retrieved_in_the_order_of_the_operands(given: int) -> None:
    arrays, _ = operands(*OPTIONS["plain"])
    dev, recorder = watched("none")
    tensors = [leaf(dev, array, tracked=False) for array in [*arrays, np.ones(3)]]
    tensors[2] = leaf(dev, arrays[2])
    before = [tensor.node.id for tensor in tensors]
    out = tensors[0].deform_conv2d(*tensors[1:given])
    backward(out)
    assert [event.node_id for event in of_type(recorder.events, Retrieved)] == before[:given]


@pytest.mark.parametrize(
    ("shapes", "options", "reason"),
    [
        (((1, 2, 3), (1, 8, 2, 2), (1, 2, 2, 2)), {}, "rank 4"),
        (((1, 2, 3, 3), (1, 7, 2, 2), (1, 2, 2, 2)), {}, r"offset must have shape \[1, 8, 2, 2\]"),
        (((1, 2, 3, 3), (1, 8, 2, 2), (1, 1, 2, 2)), {}, "not fit 2 channels in 1 group"),
        (((1, 3, 3, 3), (1, 8, 2, 2), (1, 3, 2, 2)), {"offset_groups": 2}, "offset group"),
        (((1, 2, 3, 3), (1, 8, 2, 2), (1, 2, 4, 4)), {}, "does not fit"),
        (
            ((1, 2, 3, 3), (1, 8, 2, 2), (1, 2, 2, 2), (1, 8, 2, 2)),
            {},
            r"mask must have shape \[1, 4, 2, 2\]",
        ),
    ],
)
def test_what_does_not_fit(shapes: Any, options: dict[str, Any], reason: str) -> None:
    dev = unwatched("none")
    x, *rest = (leaf(dev, np.zeros(shape)) for shape in shapes)
    with pytest.raises(ShapeError, match=reason):
        x.deform_conv2d(*rest, **options)
