"""Traced tensors: values, placeholders, checkpoints and gradients through them.

The cases of tenferro-ad's checkpoint tests, and shared chains, which they lack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli.errors import InactiveOutputError
from ckptcli.traced import Tensor, Tracer, grad, vjp
from ckptcli.traced.program import Compiler
from tests.traced_kit import POINT, STEP, checkpointed, number, slope


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
