"""Comparisons of tensors, masks as operands, and what is neither a mask nor a number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, device
from ckptcli.errors import DeviceError, OperandError, ShapeError
from tests.backend_kit import BACKENDS, NEEDS_TORCH
from tests.helpers import STRATEGIES, backward, gradient, same_bits, unwatched

SIGNS = ("eq", "ne", "gt", "lt", "ge", "le")
VALUES = [1.0, 2.0, 0.5, np.nan]


@pytest.fixture(params=BACKENDS)
def dev(request: pytest.FixtureRequest) -> Device:
    return device(request.param, "cpu").autodiff()


def tracked(dev: Device, data: Any) -> Tensor:
    return dev.tensor(data, "float64").require_grad()


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("other", ["number", "tensor", "row"])
def test_a_comparison_is_element_wise(dev: Device, sign: str, other: str) -> None:
    compare = getattr(operator, sign)
    x = tracked(dev, [VALUES, VALUES])
    row = [1.0, 1.0, 3.0, np.nan]
    sides = {
        "number": (1.0, 1.0),
        "tensor": (tracked(dev, [row, row]), np.array([row, row])),
        "row": (tracked(dev, row), np.array(row)),
    }
    ours, numbers = sides[other]
    np.testing.assert_array_equal(compare(x, ours), compare(np.array([VALUES, VALUES]), numbers))


def test_a_number_on_the_left_is_compared_too(dev: Device) -> None:
    x = tracked(dev, VALUES)
    np.testing.assert_array_equal(1.0 == x, [True, False, False, False])  # noqa: SIM300
    np.testing.assert_array_equal(1.0 < x, [False, True, False, False])  # noqa: SIM300


def test_a_comparison_makes_no_node(dev: Device) -> None:
    x = tracked(dev, VALUES)
    _ = x == 1.0, x != x, x > 0.0
    assert (x * 2.0).node.id == x.node.id + 1


def test_tensors_stay_keys_by_identity(dev: Device) -> None:
    x, same = tracked(dev, [1.0]), tracked(dev, [1.0])
    names = {x: "x", same: "same"}
    assert (names[x], names[same], len({x, same, x})) == ("x", "same", 2)


def test_a_mask_times_a_product_has_the_gradient_that_it_should(dev: Device) -> None:
    w = tracked(dev, [1.0, 2.0, 3.0])
    loss = ((w * w) * (w == 1.0)).sum()
    assert loss.item() == 1.0
    np.testing.assert_array_equal(gradient(backward(loss), w), [2.0, 0.0, 0.0])


USES: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
    "mul": (lambda w, m: w * m, [0.0, 1.0, 1.0]),
    "rmul": (lambda w, m: m * w, [0.0, 1.0, 1.0]),
    "add": (lambda w, m: w + m, [1.0, 1.0, 1.0]),
    "radd": (lambda w, m: m + w, [1.0, 1.0, 1.0]),
    "sub": (lambda w, m: w - m, [1.0, 1.0, 1.0]),
    "rsub": (lambda w, m: m - w, [-1.0, -1.0, -1.0]),
    "div": (lambda w, m: w / (w + m), [0.0, 1 / 9, 1 / 16]),
    "rdiv": (lambda w, m: m / w, [0.0, -1 / 4, -1 / 9]),
    "pow": (lambda w, m: w**m, [0.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("name", USES)
def test_a_mask_counts_0_and_1(dev: Device, name: str) -> None:
    use, expected = USES[name]
    w = tracked(dev, [1.0, 2.0, 3.0])
    y = use(w, w > 1.0)
    found = gradient(backward(y.sum()), w)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_mask_under_every_strategy_gives_the_same_bits() -> None:
    found = []
    for strategy in STRATEGIES:
        dev = unwatched(strategy)
        w = tracked(dev, [0.3, 1.0, 2.5])
        y = (w.exp() * (w >= 1.0)).sin() * (w != 1.0)
        found.append(gradient(backward(y.sum()), w))
    assert same_bits(found[:1], found[1:])


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "write 1.0": lambda w: w * True,
    "write 0.0": lambda w: w + False,
    "write 1.0, or a mask": lambda w: w == True,  # noqa: E712
    "`mask_fill` takes a mask, got the single value False": lambda w: w.mask_fill(False, 1.0),
    "`mask_where` takes a mask, got the single value True": lambda w: w.mask_where(True, w),
    "`mask_select` takes a mask, got the single value True": lambda w: w.mask_select(np.True_),
    "`mask_fill` takes a number, got the bool True": lambda w: w.mask_fill(w == 1.0, True),
    "`clamp_min` takes a number, got the bool False": lambda w: w.clamp(False, 1.0),
    "`powf_scalar` takes a number, got the bool True": lambda w: w.powf_scalar(True),
    "write `mask != 0.0`": lambda w: w.mask_fill(w, 1.0),
    "identity is `is`": lambda w: w == None,  # noqa: E711
    "got str": lambda w: w > "1",
    "got ndarray": lambda w: w * np.ones(3),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_neither_a_mask_nor_a_number_is_refused(dev: Device, text: str) -> None:
    with pytest.raises(OperandError) as caught:
        REFUSED[text](tracked(dev, [1.0, 2.0, 3.0]))
    assert text in f"{caught.value} {caught.value.hint}"


def test_a_bool_is_no_dim(dev: Device) -> None:
    with pytest.raises(ShapeError, match="dim True"):
        tracked(dev, [[1.0]]).sum_dim(True)


def test_shapes_that_do_not_fit_are_refused(dev: Device) -> None:
    with pytest.raises(ShapeError, match=r"`==` cannot compare shapes \[3\] and \[2\]"):
        _ = tracked(dev, [1.0, 2.0, 3.0]) == tracked(dev, [1.0, 2.0])


@NEEDS_TORCH
@pytest.mark.slow
def test_tensors_of_two_libraries_are_not_compared() -> None:
    with pytest.raises(DeviceError, match="`<` got tensors on different devices"):
        _ = tracked(device().autodiff(), [1.0]) < tracked(device("torch", "cpu").autodiff(), [1.0])
