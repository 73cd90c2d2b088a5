"""Which calls take a node id, what they require of the backward pass, and what a device refuses.

Source: Burn 0.22.1, `burn-autodiff/src/{tensor,graph/node}.rs`, `burn-dispatch` (device rules).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor, cat, device
from ckptcli.autodiff.functions import silu
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import DeviceError, DtypeError, NotALeafError, OperandError, ShapeError
from ckptcli.graph import Requirement
from tests.helpers import backward, gradient, leaf, watched

NONE, GRAD, IN_BACKWARD = Requirement.NONE, Requirement.GRAD, Requirement.GRAD_IN_BACKWARD
M = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("call", "ids"),
    [
        pytest.param(lambda x: x.powf_scalar(2.0), 1, id="square"),
        pytest.param(lambda x: x.powf_scalar(1.0), 0, id="power-1"),
        pytest.param(lambda x: x.powf_scalar(0.0), 1, id="power-0"),
        pytest.param(lambda x: x.powf_scalar(-1.0), 1, id="power-minus-1"),
        pytest.param(lambda x: x.powf_scalar(-2.0), 2, id="power-minus-2"),
        pytest.param(lambda x: x**3.0, 1, id="power-3"),
        pytest.param(lambda x: x.transpose(), 1, id="transpose"),
        pytest.param(lambda x: x.swap_dims(1, -1), 0, id="swap-same-dims"),
        pytest.param(lambda x: x.permute([1, 0]), 1, id="permute"),
        pytest.param(lambda x: x.permute([0, -1]), 0, id="permute-identity"),
        pytest.param(lambda x: x.detach(), 1, id="detach"),
        pytest.param(lambda x: x.set_require_grad(False), 1, id="set_require_grad-false"),
        pytest.param(lambda x: x.set_require_grad(True), 0, id="set_require_grad-true"),
        pytest.param(lambda x: x.require_grad(), 0, id="require_grad"),
        pytest.param(lambda x: x.inner(), 0, id="inner"),
        pytest.param(lambda x: x.inner() * 2.0 + x.inner(), 0, id="op-without-autodiff"),
        pytest.param(lambda x: x > 0.0, 0, id="comparison"),
        pytest.param(lambda x: x.numpy(), 0, id="numpy"),
        pytest.param(lambda x: x[0:1], 1, id="slice"),
        pytest.param(lambda x: x.reshape([4]), 1, id="reshape"),
        pytest.param(lambda x: x.mean_dim(0), 1, id="mean_dim"),
        pytest.param(lambda x: x @ x, 1, id="matmul"),
        pytest.param(lambda x: cat([x, x], 0), 1, id="cat"),
        pytest.param(lambda x: 1.0 - x, 2, id="scalar-minus-tensor"),
        pytest.param(silu, 2, id="silu"),
        pytest.param(lambda x: backward(x.sum()), 1, id="backward-takes-none"),
    ],
)
def test_ids_taken(call: Callable[[Tensor], object], ids: int) -> None:
    dev, _ = watched("balanced")
    call(leaf(dev, M))
    assert leaf(dev, M).node.id - 1 == ids


@pytest.mark.parametrize(
    ("lhs", "rhs", "ids"),
    [
        ((5, 1, 3), (1, 3, 2), 3),
        ((4, 5, 1, 3), (4, 1, 3, 2), 3),
        ((1, 1, 3), (1, 3, 2), 3),
        ((5, 2, 3), (1, 3, 2), 1),
        ((5, 1, 3), (5, 3, 2), 1),
        ((1, 3), (3, 2), 1),
    ],
)
def test_a_batch_of_vectors_times_a_matrix_is_swapped_twice(
    lhs: tuple[int, ...], rhs: tuple[int, ...], ids: int
) -> None:
    dev, _ = watched("none")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=lhs), rng.normal(size=rhs)
    product = leaf(dev, a) @ leaf(dev, b)
    assert product.node.id - 1 == ids
    np.testing.assert_allclose(product.numpy(), a @ b, rtol=1e-12)


def test_a_batch_of_vectors_times_batches_of_a_matrix_of_higher_rank() -> None:
    dev, _ = watched("none")
    a, b = np.arange(6.0).reshape(3, 1, 2), np.arange(40.0).reshape(4, 1, 2, 5)
    np.testing.assert_array_equal((leaf(dev, a) @ leaf(dev, b)).numpy(), a @ b)


def test_a_composite_takes_ids_in_evaluation_order() -> None:
    dev, _ = watched("none")
    out = silu(leaf(dev, M))
    assert [parent.id for parent in out.node.parents] == [0, 1]
    assert out.node.id == 2


def test_an_op_that_fails_takes_no_id() -> None:
    dev, _ = watched("none")
    x = leaf(dev, M)
    with pytest.raises(ShapeError, match=r"`add` cannot take shape \[2, 2\] and \[3\]"):
        x + leaf(dev, [1, 2, 3])
    assert leaf(dev, M).node.id == 2


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        (False, False, NONE),
        (True, False, IN_BACKWARD),
        (False, True, IN_BACKWARD),
        (True, True, IN_BACKWARD),
    ],
)
def test_requirement_of_an_output(lhs: bool, rhs: bool, expected: Requirement) -> None:
    dev, _ = watched("none")
    a, b = leaf(dev, M, lhs), leaf(dev, M, rhs)
    assert a.requirement is (GRAD if lhs else NONE)
    for out in (a + b, a @ b, cat([a, b], 0), (a * b).sin()):
        assert out.requirement is expected
        assert out.is_tracked is (expected is not NONE)


def test_require_grad_keeps_the_id_and_does_nothing_twice() -> None:
    dev, _ = watched("none")
    x = dev.tensor(M)
    w = x.require_grad()
    assert (x.requirement, w.requirement) == (NONE, GRAD)
    assert w.node.id == x.node.id
    assert w.require_grad() is w


def test_require_grad_of_an_untracked_output_makes_it_a_leaf() -> None:
    dev, _ = watched("balanced")
    y = leaf(dev, M, tracked=False).exp().sin()
    w = y.require_grad()
    assert (y.node.id, y.node.order, y.requirement) == (2, 2, NONE)
    assert (w.node.id, w.node.order, w.requirement) == (2, 0, GRAD)
    gradients = backward((w * w).sum())
    assert list(gradients.node_ids()) == [2]
    np.testing.assert_array_equal(gradient(gradients, w), 2 * y.numpy())


def test_require_grad_of_an_intermediate_value_is_refused() -> None:
    dev, _ = watched("none")
    y = leaf(dev, M).exp()
    text = "Can't convert a non leaf tensor into a tracked tensor: node 1 is the output of `exp`"
    with pytest.raises(NotALeafError, match=text):
        y.require_grad()
    with pytest.raises(NotALeafError, match=text):
        y.set_require_grad(True)


def test_detach_of_a_leaf_gathers_the_gradient_on_the_new_leaf() -> None:
    dev, _ = watched("none")
    x = leaf(dev, M)
    d = x.detach()
    assert (d.node.id, d.requirement) == (1, GRAD)
    gradients = backward((d * x.exp()).sum())
    np.testing.assert_array_equal(gradient(gradients, d), np.exp(M))
    np.testing.assert_array_equal(gradient(gradients, x), M * np.exp(M))
    only_d = backward(x.detach().sum())
    assert only_d.wrt(x) is None
    assert x.exp().detach().requirement is NONE
    assert x.set_require_grad(False).requirement is NONE


def test_order_counts_untracked_parents() -> None:
    dev, _ = watched("balanced")
    x, c = leaf(dev, M), leaf(dev, M, tracked=False)
    k = c.exp().sin()
    y = x * k
    assert (x.node.order, c.node.order, k.node.order, y.node.order) == (0, 0, 2, 3)
    assert cat([x, y, c], 0).node.order == 4
    assert k.detach().node.order == 0


def test_duplicate_parents_are_kept() -> None:
    dev, _ = watched("balanced")
    x = leaf(dev, M)
    y = x * x
    assert y.node.parents == (x.node, x.node)
    assert y.node.saved == y.node.parents
    assert [value is x.value for value in y.node.backup_values] == [True, True]


def test_operands_under_different_strategies_are_refused() -> None:
    plain = device().autodiff()
    lhs, rhs = leaf(plain, M), leaf(plain.gradient_checkpointing(), M)
    text = (
        "Gradient checkpointing strategy mismatch: Disabled vs Balanced. "
        "Tensors in the same operation must share a strategy."
    )
    with pytest.raises(DeviceError) as raised:
        lhs @ rhs
    assert str(raised.value) == text
    with pytest.raises(DeviceError) as raised:
        cat([rhs, lhs], 0)
    assert "mismatch: Balanced vs Disabled" in str(raised.value)


def test_devices_of_one_strategy_work_together() -> None:
    lhs = leaf(device().autodiff().gradient_checkpointing(), M)
    rhs = leaf(device().autodiff().gradient_checkpointing(parse_strategy("balanced")), M)
    np.testing.assert_array_equal(gradient(backward((lhs * rhs).sum()), lhs), M)


def test_a_device_without_autodiff() -> None:
    dev = device()
    with pytest.raises(DeviceError) as raised:
        dev.gradient_checkpointing()
    assert str(raised.value) == (
        "Gradient checkpointing requires autodiff; use Device::autodiff().gradient_checkpointing()"
    )
    x = dev.tensor(M)
    with pytest.raises(DeviceError, match=r"require_grad\(\) needs a tape"):
        x.require_grad()
    with pytest.raises(DeviceError, match=r"backward\(\) needs a tape"):
        backward((x * 2.0).sum())
    with pytest.raises(DeviceError, match="operands on different devices"):
        x + leaf(dev.autodiff(), M)


def test_autodiff_twice_is_refused() -> None:
    for dev in (device().autodiff(), device().autodiff().gradient_checkpointing()):
        with pytest.raises(DeviceError, match="Only first-order autodiff is supported"):
            dev.autodiff()


def test_device_lines() -> None:
    dev = device()
    assert repr(dev) == "Device<Numpy(Cpu)>"
    line = "Device<Autodiff {{ device: Numpy(Cpu), checkpointing: {} }}>"
    assert repr(dev.autodiff()) == line.format("Disabled")
    assert repr(dev.autodiff().gradient_checkpointing()) == line.format("Balanced")
    assert repr(dev.autodiff().gradient_checkpointing().inner()) == repr(dev)
    for text, title in (
        ("remat", "Remat"),
        ("remat:every=2", "Remat { every: 2 }"),
        (
            "remat:every=2,policy=save_only_these_names('a,b=c'),last=plain",
            "Remat { every: 2, policy: save_only_these_names('a,b=c'), last: plain }",
        ),
        ("segments:4", "Segments { 4 }"),
        ("sqrt:count", "Sqrt { count }"),
    ):
        assert repr(dev.autodiff().gradient_checkpointing(text)) == line.format(title)


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], None, "float32"),
        ([1.0, 2.0], None, "float32"),
        (1.5, None, "float32"),
        (np.ones(2), None, "float64"),
        (np.ones(2, np.float32), None, "float32"),
        ([1, 2], "float64", "float64"),
    ],
)
def test_dtype_of_a_new_tensor(data: object, dtype: str | None, expected: str) -> None:
    tensor = device().tensor(data, dtype)
    assert (tensor.dtype, len(tensor.shape)) == (expected, 1)


@pytest.mark.parametrize(
    ("data", "dtype"), [([1.0], "float16"), ([1.0], "int32"), ([1j], None), ([1.0], "no_dtype")]
)
def test_a_dtype_that_a_tensor_cannot_have(data: object, dtype: str | None) -> None:
    with pytest.raises(DtypeError, match="a tensor cannot have dtype"):
        device().tensor(data, dtype)


def test_operands_of_different_dtypes_are_refused() -> None:
    dev, _ = watched("none")
    with pytest.raises(DtypeError, match=r"`mul` got operands .*: float64, float32"):
        leaf(dev, M) * dev.tensor(M, "float32")


@pytest.mark.parametrize("index", [0, [0, 1], (slice(1), 0), (slice(1),) * 3])
def test_an_index_that_is_not_a_slice_is_refused(index: Any) -> None:
    dev, _ = watched("none")
    with pytest.raises(ShapeError, match="use a slice for each dim"):
        leaf(dev, M)[index]


@pytest.mark.parametrize(
    ("data", "dtype", "words"),
    [
        ([[1.0], [2.0, 3.0]], None, "cannot be made of this list: .*; give numbers, in lists of"),
        ("one", "float32", "cannot be made of this str: .*'one'"),
    ],
)
def test_data_that_no_tensor_can_be_made_of(data: object, dtype: str | None, words: str) -> None:
    with pytest.raises(OperandError, match=words):
        device("numpy").tensor(data, dtype)
