"""Traced tensors: what is refused and in which words, and that an error leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.errors import (
    BindingError,
    DeviceError,
    DtypeError,
    EngineError,
    InactiveOutputError,
    OperandError,
    ShapeError,
    UnknownNameError,
)
from ckptcli.traced import Tracer, grad, vjp
from tests.traced_kit import checkpointed


def test_messages_about_bindings() -> None:
    tracer = Tracer()
    x, y = tracer.input((1,)), tracer.input((2,))
    z = x + y
    with pytest.raises(BindingError) as error:
        z.evaluate([(y, [1.0, 2.0])])
    assert error.value.message == "placeholder User { id: 0 } has no runtime input binding"
    with pytest.raises(BindingError) as error:
        z.evaluate([(x, [1.0]), (y, [1.0, 2.0]), (x.clone(), [1.0])])
    assert error.value.message == "placeholder User { id: 0 } was bound more than once"
    for other in (z, tracer.tensor([1.0])):
        with pytest.raises(BindingError) as error:
            z.evaluate([(x, [1.0]), (other, [1.0])])
        assert error.value.message == (
            "binding #1 is not a placeholder; only tensors built via "
            "input_concrete_shape / input_symbolic_shape can be bound"
        )
    with pytest.raises(ShapeError, match=r"placeholder User \{ id: 1 \} has shape \[2\], its data"):
        z.evaluate([(x, [1.0]), (y, [1.0])])
    assert z.evaluate([(x, [1.0]), (y, [1.0, 2.0])]).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("merge", ["shared", "copy", "left"])
def test_a_failed_checkpoint_changes_nothing(merge: str) -> None:
    tracer = Tracer(merge=merge)
    x = tracer.input((1,))
    y = checkpointed(tracer.tensor([3.0]) * 2.0) * x
    before = (y.node, y.history, y.checkpoints(), tracer.peek_key())
    with pytest.raises(BindingError) as error:
        y.checkpoint()
    assert error.value.message == "placeholder User { id: 0 } has no runtime input binding"
    assert (y.node, y.history, y.checkpoints(), tracer.peek_key()) == before
    assert y.evaluate([(x, [5.0])]).tolist() == [30.0]
    assert grad(y, x).evaluate([(x, [5.0])]).tolist() == [6.0]


def test_a_checkpoint_whose_op_fails_changes_nothing() -> None:
    class Failing(NumpyBackend):
        def __init__(self) -> None:
            class Namespace:
                def multiply(self, *_: object) -> None:
                    raise MemoryError("no room")

            super().__init__(Namespace())

    y = Tracer(Failing()).tensor([3.0]) * 2.0
    node = y.node
    with pytest.raises(MemoryError):
        y.checkpoint()
    assert (y.node, y.checkpoints().entries) == (node, 0)


def test_messages_about_gradients() -> None:
    tracer = Tracer()
    x, other = tracer.tensor([[1.0, 2.0]]), tracer.tensor([1.0])
    with pytest.raises(ShapeError) as shape:
        grad(x * x, x)
    assert shape.value.message == "grad requires a scalar output, got shape [1, 2]"
    with pytest.raises(InactiveOutputError) as inactive:
        grad(x.sum(), other)
    assert inactive.value.message == "grad output is inactive for User { id: 1 }"
    with pytest.raises(OperandError) as operand:
        grad((x * x).sum(), x * 2.0)
    assert operand.value.message == "expected traced leaf input, got the output of `scale`"
    with pytest.raises(ShapeError, match=r"shape \[1, 2\], got a cotangent of shape \[1\]"):
        vjp(x * x, x, other)
    assert vjp(x * x, x, x).evaluate().tolist() == [[2.0, 8.0]]


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (ShapeError, lambda t: t.tensor([1.0, 2.0]) + t.tensor([1.0, 2.0, 3.0]), "`add`"),
        (ShapeError, lambda t: t.tensor([1.0]) @ t.tensor([1.0]), "`matmul`"),
        (ShapeError, lambda t: t.tensor([[1.0, 2.0]]).svd(), "square"),
        (ShapeError, lambda t: t.tensor([1.0, 2.0]).reshape((3,)), "`reshape`"),
        (ShapeError, lambda t: t.tensor([1.0, 2.0]).permute((1,)), "`permute`"),
        (ShapeError, lambda t: t.tensor([1.0, 2.0]).sum_dim(1), "`sum_dim`"),
        (ShapeError, lambda t: t.tensor([1.0, 2.0]).broadcast_to((3,)), "`broadcast_to`"),
        (ShapeError, lambda t: t.tensor([1.0])[:1, :1], "`slice`"),
        (DtypeError, lambda t: t.tensor([1.0]) + t.tensor([1.0], "float32"), "float32"),
        (DtypeError, lambda t: t.input((1,), "int8"), "int8"),
        (DeviceError, lambda t: t.tensor([1.0]) + Tracer().tensor([1.0]), "two tracers"),
        (UnknownNameError, lambda t: Tracer(merge="shard"), "shared"),
    ],
)
def test_wrong_operands_are_named(
    error: type[EngineError], call: Callable[[Tracer], Any], words: str
) -> None:
    with pytest.raises(error, match=words):
        call(Tracer())


def test_a_tensor_says_what_it_is() -> None:
    tracer = Tracer()
    x = tracer.input((2, 3))
    assert repr(x) == "traced.Tensor(User { id: 0 }, shape=[2, 3], dtype=float64)"
    assert repr(x.exp()) == "traced.Tensor(exp, shape=[2, 3], dtype=float64)"
    y = checkpointed(tracer.tensor([1.0]) * 2.0)
    assert repr(y) == "traced.Tensor(User { id: 2 }, shape=[1], dtype=float64)"
    assert repr(tracer.tensor([1.0])) == "traced.Tensor(User { id: 3 }, shape=[1], dtype=float64)"
