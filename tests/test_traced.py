"""Traced tensors: values, placeholders, checkpoints, gradients, and what an error leaves behind.

The cases of tenferro-ad's checkpoint tests, and shared chains, which they lack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli.backends import open_backend
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
from ckptcli.traced import Tensor, Tracer, grad, vjp
from ckptcli.traced.ops import DECLARATIONS
from ckptcli.traced.program import Compiler
from tests.backend_kit import NEEDS_TORCH
from tests.strict_backend import StrictBackend

STEP = 1e-5


def number(tensor: Tensor) -> float:
    return float(tensor.evaluate().item())


def checkpointed(tensor: Tensor) -> Tensor:
    tensor.checkpoint()
    return tensor


def slope(function: Callable[[float], float], at: float) -> float:
    """The fourth-order central difference."""
    near = function(at + STEP) - function(at - STEP)
    far = function(at + 2 * STEP) - function(at - 2 * STEP)
    return (8.0 * near - far) / (12.0 * STEP)


def test_a_checkpoint_keeps_the_value() -> None:
    x = Tracer().tensor([3.0])
    y = x * x
    assert y.data is None
    y.checkpoint()
    assert float(y.data[0]) == 9.0
    assert number(y) == 9.0


def test_what_follows_a_checkpoint_runs_from_its_leaf() -> None:
    tracer = Tracer()
    y = checkpointed(tracer.tensor([3.0]) * 5.0)
    z = y + 1.0
    assert number(z) == 16.0
    assert len(tracer.compiler.compile([z]).instructions) == 1


def test_a_clone_from_before_keeps_the_old_graph() -> None:
    tracer = Tracer()
    x = tracer.tensor([3.0])
    y = x * x
    before = y.clone()
    y.checkpoint()
    assert before.data is None
    assert len(tracer.compiler.compile([before]).instructions) == 1
    assert number(before) == number(y)
    assert number(grad(before * y, x)) == 4 * 3.0**3


def test_the_gradient_through_a_checkpoint() -> None:
    x = Tracer().tensor([2.0])
    y = checkpointed(x * x)
    assert number(grad(y * y, x)) == 4 * 2.0**3


def test_the_second_gradient_through_a_checkpoint() -> None:
    x = Tracer().tensor([2.0])
    y = checkpointed(x * x)
    first = grad(y * y, x)
    assert number(grad(first, x)) == 12 * 2.0**2
    third = grad(grad(first, x), x)
    assert number(third) == 24 * 2.0


def test_a_gradient_that_is_checkpointed_itself() -> None:
    x = Tracer().tensor([2.0])
    first = checkpointed(grad(checkpointed(x * x) * x, x))
    assert number(grad(first * first, x)) == 2 * (3 * 4.0) * (6 * 2.0)


def test_a_hessian_times_a_vector_through_checkpoints() -> None:
    tracer = Tracer()
    x = tracer.tensor([0.3, -0.7, 1.1])
    v = tracer.tensor([1.0, 2.0, -1.0])
    y = checkpointed(x.sin() * x)
    z = checkpointed((y * y).sum()) + checkpointed(y.exp()).sum()
    product = grad((grad(z, x) * v).sum(), x).evaluate()

    def gradient(data: Any) -> Any:
        other = Tracer()
        x = other.tensor(data)
        y = x.sin() * x
        return grad((y * y).sum() + y.exp().sum(), x).evaluate()

    at, along = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -1.0])
    expected = (gradient(at + STEP * along) - gradient(at - STEP * along)) / (2 * STEP)
    np.testing.assert_allclose(product, expected, rtol=1e-8)


def test_a_loop_with_a_checkpoint_each_turn() -> None:
    a = Tracer().tensor([0.8])
    x = a.tracer.tensor([0.5])
    for _ in range(3):
        x = checkpointed(a * x.cos())
    assert x.checkpoints().entries == 3

    def loop(a: float) -> float:
        x = 0.5
        for _ in range(3):
            x = a * math.cos(x)
        return x

    assert number(x) == pytest.approx(loop(0.8), rel=1e-15)
    assert number(grad(x, a)) == pytest.approx(slope(loop, 0.8), rel=1e-10)


def test_a_loop_that_cuts_its_state() -> None:
    """The second element alone is left of three; what was cut off has no share."""
    a = Tracer().tensor([0.5])
    x = a.tracer.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        x = checkpointed((a * x)[:2])
    assert number(grad(x.sum(), a)) == pytest.approx(3 * 0.5**2 * (1.0 + 2.0), rel=1e-15)


@pytest.mark.parametrize("merge", ["shared", "copy"])
@pytest.mark.parametrize("sides", ["left", "right", "both", "none"])
@pytest.mark.parametrize(
    ("combine", "by_x", "by_y"),
    [
        (lambda a, b: a + b, 4.0, 6.0),
        (lambda a, b: a - b, 4.0, -6.0),
        (lambda a, b: a * b, 36.0, 24.0),
        (lambda a, b: a / b, 4.0 / 9.0, -8.0 / 27.0),
    ],
)
def test_operands_with_checkpoints_of_their_own(
    merge: str, sides: str, combine: Callable[[Tensor, Tensor], Tensor], by_x: float, by_y: float
) -> None:
    tracer = Tracer(merge=merge)
    x, y = tracer.tensor([2.0]), tracer.tensor([3.0])
    a, b = x * x, y * y
    if sides in ("left", "both"):
        a.checkpoint()
    if sides in ("right", "both"):
        b.checkpoint()
    z = combine(a, b)
    assert number(grad(z, x)) == pytest.approx(by_x, rel=1e-15)
    assert number(grad(z, y)) == pytest.approx(by_y, rel=1e-15)


def test_the_rule_that_keeps_the_left_side_loses_the_right_one() -> None:
    tracer = Tracer(merge="left")
    x, y = tracer.tensor([2.0]), tracer.tensor([3.0])
    z = checkpointed(x * x) * checkpointed(y * y)
    assert number(grad(z, x)) == 36.0
    one = tracer.tensor([1.0])
    with pytest.raises(InactiveOutputError, match=r"^vjp output is inactive for User \{ id: 1 \}"):
        vjp(z, y, one)
    with pytest.raises(InactiveOutputError, match=r"^grad output is inactive for User \{ id: 1 \}"):
        grad(z, y)


@pytest.mark.parametrize("merge", ["shared", "copy", "left"])
def test_a_shared_chain_squared_again_and_again(merge: str) -> None:
    x = Tracer(merge=merge).tensor([1.01])
    y = x
    for n in range(1, 9):
        y = checkpointed(y * y)
        assert number(grad(y, x)) == pytest.approx(2**n * 1.01 ** (2**n - 1), rel=1e-13)
    assert number(grad(grad(y, x), x)) == pytest.approx(256 * 255 * 1.01**254, rel=1e-12)


def test_a_gradient_with_respect_to_a_checkpoint_stops_there() -> None:
    x = Tracer().tensor([2.0])
    y = checkpointed(x * x)
    z = checkpointed(y * y * y)
    assert number(grad(z, y)) == 3 * 4.0**2
    assert number(grad(z, x)) == 6 * 2.0**5
    assert number(grad(grad(z, y), y)) == 6 * 4.0


def test_a_placeholder_gets_its_data_when_the_graph_is_evaluated() -> None:
    tracer = Tracer()
    x, y = tracer.input((2,)), tracer.input((1,))
    z = (x * x).sum() * y
    program = tracer.compiler.compile([z, grad(z, x), grad(z, y)])
    for scale in (1.0, 3.0):
        value, by_x, by_y = program.run([(x, [1.0, 2.0]), (y, [scale])])
        assert value.tolist() == [5.0 * scale]
        assert by_x.tolist() == [2.0 * scale, 4.0 * scale]
        assert by_y.tolist() == [5.0]


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


def test_an_explicit_compiler_is_the_one_that_is_used() -> None:
    tracer = Tracer()
    own = Compiler(tracer.backend)
    y = tracer.tensor([2.0]) * 3.0
    y.checkpoint(own)
    (y + 1.0).evaluate(compiler=own)
    assert (own.compiled, tracer.compiler.compiled) == (2, 0)


@pytest.mark.parametrize(("merge", "entries"), [("shared", 1), ("copy", 2), ("left", 2)])
def test_a_second_checkpoint_takes_the_data_that_is_there(merge: str, entries: int) -> None:
    """Without compiling; in tenferro's rules it is an entry of its own."""
    tracer = Tracer(merge=merge)
    x = tracer.tensor([2.0])
    y = checkpointed(x * x)
    data = y.data
    y.checkpoint()
    assert y.data is data
    assert tracer.compiler.compiled == 1
    assert y.checkpoints().entries == entries
    assert number(grad(y, x)) == 4.0


def test_float32_stays_float32() -> None:
    tracer = Tracer()
    x = tracer.tensor(POINT, "float32")
    y = checkpointed((x.svd()[1] * 0.5 + 1.0) / 3.0)
    gradient = grad((1.0 / y).sum(), x)
    assert (y.data.dtype, gradient.dtype, gradient.evaluate().dtype) == ("float32",) * 3


def test_data_is_copied_in() -> None:
    data = np.array([1.0, 2.0])
    x = Tracer().tensor(data)
    data[:] = 0.0
    assert x.evaluate().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        x.evaluate()[:] = 0.0


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


UNARY: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + x.transpose(),
    "sub": lambda x: x - x.transpose() * 3.0,
    "rsub": lambda x: 2.0 - x,
    "mul": lambda x: x * x.transpose(),
    "div": lambda x: x / (x.transpose() + 5.0),
    "rdiv": lambda x: 1.0 / (x + 5.0),
    "scale": lambda x: x * 3.0 - 1.0,
    "divided by a number": lambda x: x / 4.0,
    "neg": lambda x: -x * x,
    "row": lambda x: x * x[:1, :],
    "column": lambda x: x / (x[:, :1] * x[:, :1] + 1.0),
    "scalar": lambda x: x * x.sum(),
    "vector": lambda x: x + x[1:2, :].reshape((3,)),
    "broadcast": lambda x: x[:1, :].broadcast_to((4, 3)) * 2.0,
    "sum_dim": lambda x: x.sum_dim(0) * x.sum_dim(1),
    "sqrt": lambda x: (x * x + 1.0).sqrt(),
    "ln": lambda x: (x * x + 1.0).ln(),
    "exp": lambda x: x.exp(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tanh": lambda x: x.tanh(),
    "matmul": lambda x: x @ x @ x.transpose(),
    "permute": lambda x: x.reshape((3, 3, 1)).permute((2, 0, 1)) * x,
    "slice": lambda x: x[::2, 1:] * x[1:, :2],
    "u": lambda x: x.svd()[0] * x.svd()[0][:1, :],
    "s": lambda x: x.svd()[1],
    "v": lambda x: x.svd()[2] * x.svd()[2][:1, :],
    "all of svd": lambda x: (x.svd()[0] * x.svd()[1]) @ x.svd()[2].transpose() * x,
}
"""Programs that do not depend on the signs of singular vectors."""

POINT = np.array([[0.7, -0.2, 0.4], [0.1, 1.5, -0.6], [0.3, 0.2, -1.1]])


@pytest.mark.parametrize("name", UNARY)
def test_gradients_and_second_gradients_agree_with_differences(name: str) -> None:
    direction = np.array([[0.5, 0.1, -0.3], [0.2, -0.4, 0.6], [-0.1, 0.3, 0.2]])

    def gradients(data: Any, checkpoint: bool) -> tuple[float, Any, Any]:
        tracer = Tracer()
        x = tracer.tensor(data)
        y = UNARY[name](x)
        if checkpoint:
            y.checkpoint()
        value = (y * y).sum() + y.sum()
        first = grad(value, x)
        try:
            second = grad((first * tracer.constant(direction)).sum(), x).evaluate()
        except InactiveOutputError:
            second = np.zeros_like(data)
        return number(value), first.evaluate(), second

    value, first, second = gradients(POINT, checkpoint=False)
    along = float((first * direction).sum())
    assert along == pytest.approx(
        slope(lambda t: gradients(POINT + t * direction, False)[0], 0.0), rel=1e-8, abs=1e-9
    )
    twice = slope(
        lambda t: float((gradients(POINT + t * direction, False)[1] * direction).sum()), 0.0
    )
    assert float((second * direction).sum()) == pytest.approx(twice, rel=1e-6, abs=1e-8)
    for plain, through in zip((value, first, second), gradients(POINT, checkpoint=True)):
        assert np.asarray(plain).tobytes() == np.asarray(through).tobytes()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(
    "backend", [StrictBackend, pytest.param(lambda: open_backend("torch"), marks=NEEDS_TORCH)]
)
def test_nothing_only_numpy_has_is_used(name: str, backend: Callable[[], Any]) -> None:
    def gradient(tracer: Tracer) -> Any:
        x = tracer.tensor(POINT)
        return grad(checkpointed(UNARY[name](x)).sum(), x).evaluate()

    np.testing.assert_allclose(
        gradient(Tracer(backend())), gradient(Tracer()), rtol=1e-12, atol=1e-13
    )


def test_every_op_is_differentiated_here() -> None:
    tracer = Tracer()
    used = set()
    for program in UNARY.values():
        x = tracer.tensor(POINT)
        stack = [program(x).node, grad(program(x).sum(), x).node]
        while stack:
            node = stack.pop()
            stack.extend(node.inputs)
            if node.op is not None:
                used.add(node.op.name)
    assert used == set(DECLARATIONS)
