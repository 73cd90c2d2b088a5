"""Static arguments that an op cannot have: zero, negative, huge, of another count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, device
from ckptcli.errors import ShapeError
from tests.backend_kit import BACKENDS


@pytest.fixture(params=BACKENDS)
def dev(request: pytest.FixtureRequest) -> Device:
    return device(request.param, "cpu").autodiff()


def ones(dev: Device, *shape: int) -> Tensor:
    return dev.tensor(np.ones(shape)).require_grad()


OF_SEVEN: dict[str, Callable[[Tensor], Any]] = {
    "`topk_with_indices` cannot take 9": lambda x: x.topk_with_indices(9, 0),
    "`topk_with_indices` cannot take -1": lambda x: x.topk_with_indices(-1, 0),
    "`chunk` cannot give 0 pieces": lambda x: x.chunk(0, 0),
    "`chunk` cannot give -2 pieces": lambda x: x.chunk(-2, 0),
}


HUGE = (1 << 40, 1 << 62, 1 << 63, 1 << 70)
OF_ANY_SIZE: dict[str, Callable[[Tensor, int], Any]] = {
    "unfold": lambda x, n: x.unfold(0, n, 1),
    "narrow": lambda x, n: x.narrow(0, 0, n),
    "topk": lambda x, n: x.topk_with_indices(n, 0),
    "expand": lambda x, n: x.expand([n, 8]),
    "reshape": lambda x, n: x.reshape([n]),
    "select": lambda x, n: x.select(0, [n]),
    "gather": lambda x, n: x.gather(0, [n]),
    "gather_nd": lambda x, n: x.gather_nd([[n]]),
    "avg_pool1d, padding": lambda x, n: x.reshape([1, 1, 8]).avg_pool1d(2, padding=n),
    "avg_pool1d, kernel": lambda x, n: x.reshape([1, 1, 8]).avg_pool1d(n),
    "adaptive_avg_pool1d": lambda x, n: x.reshape([1, 1, 8]).adaptive_avg_pool1d(n),
    "interpolate": lambda x, n: x.reshape([1, 1, 2, 4]).interpolate([n, 2], "bicubic"),
}


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("op", OF_ANY_SIZE)
def test_a_size_that_nothing_has_is_refused_at_once(dev: Device, op: str, size: int) -> None:
    if (op, size) == ("expand", 1 << 40):
        return  # a view of that size is possible
    with pytest.raises(ShapeError):
        OF_ANY_SIZE[op](ones(dev, 8), size)


@pytest.mark.parametrize("indices", [[0.5], [1 << 70], ["a"], [None]])
def test_an_index_that_is_not_whole_is_refused(dev: Device, indices: list[Any]) -> None:
    with pytest.raises(ShapeError, match="`select` cannot use its indices"):
        ones(dev, 8).select(0, indices)


def test_a_random_tensor_of_no_possible_shape_is_refused() -> None:
    for shape in ([-1], [1 << 62], [1 << 70]):
        with pytest.raises(ShapeError, match="a random tensor cannot have shape"):
            device().uniform(shape)


@pytest.mark.parametrize("text", OF_SEVEN)
def test_counts_that_there_are_not(dev: Device, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        OF_SEVEN[text](ones(dev, 7))


def test_all_and_none_of_the_largest(dev: Device) -> None:
    assert ones(dev, 7).topk_with_indices(7, 0)[0].shape == (7,)
    assert ones(dev, 7).topk_with_indices(0, 0)[0].shape == (0,)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((1, 3), (3, 1), (1, 3)), "needs a bias of shape"),
        (((4, 1, 1), (1, 1, 1), (4, 1, 1)), "needs a weight"),
        (((2, 3), (3, 4), (1,)), "needs a bias of shape"),
        (((2, 3), (3,)), "needs a weight"),
        (((3,), (3, 4), (1, 4)), "needs a bias of shape"),
        (((2, 3), (4, 3)), "cannot take shape"),
    ],
)
def test_a_linear_layer_whose_gradient_would_not_fit(
    dev: Device, shapes: tuple[tuple[int, ...], ...], text: str
) -> None:
    x, *others = (ones(dev, *shape) for shape in shapes)
    with pytest.raises(ShapeError, match=f"`linear` {text}"):
        x.linear(*others)


@pytest.mark.parametrize("argument", ["stride", "padding", "dilation"])
@pytest.mark.parametrize("value", [-1, 0])
@pytest.mark.parametrize("op", ["conv1d", "conv_transpose1d", "max_pool1d", "avg_pool1d"])
def test_a_window_that_moves_backwards_or_not_at_all(
    dev: Device, op: str, value: int, argument: str
) -> None:
    if (argument, value) == ("padding", 0) or (op, argument) == ("avg_pool1d", "dilation"):
        return
    kernel: Any = 2 if "pool" in op else ones(dev, 1, 1, 2)
    with pytest.raises(ShapeError):
        getattr(ones(dev, 1, 1, 8), op)(kernel, **{argument: value})


def test_a_kernel_without_elements(dev: Device) -> None:
    with pytest.raises(ShapeError, match="must be positive"):
        ones(dev, 1, 1, 8).conv_transpose1d(ones(dev, 1, 1, 0))
