"""The gradient of every op against central differences, and of what shares memory with an oracle.

Each op is run at ordinary and awkward shapes: broadcast, size 1, size 0, and over views whose
memory is not in order. The loss is the sum of a random multiple of the output's square, so that the
output itself is retrieved, and recomputed under `balanced`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli import Tensor, cat, device
from ckptcli.autodiff.ops import DECLARATIONS, OPERATIONS
from ckptcli.autodiff.ops.extremes import max_dim
from ckptcli.autodiff.ops.reduction import sum_dim
from ckptcli.autodiff.regions import checkpoint
from ckptcli.events import NodeCreated
from tests.case_kit import Case
from tests.gradient_cases import CASES, WITHOUT_DERIVATIVE
from tests.helpers import (
    STRATEGIES,
    backward,
    gradient,
    leaf,
    of_type,
    same_bits,
    unwatched,
    watched,
)

Array = NDArray[Any]

ALL = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]
IDS = [f"{name}-{i}" for name, i in ALL]


def swapped(x: Tensor) -> Tensor:
    return x.swap_dims(0, -1)


def loss_and_gradients(
    case: Case, arrays: list[Array], strategy: str, over_views: bool
) -> tuple[Tensor, list[Array]]:
    dev = unwatched(strategy)
    leaves = [leaf(dev, array.swapaxes(0, -1) if over_views else array) for array in arrays]
    out = case.function(*(map(swapped, leaves) if over_views else leaves))
    weights = np.random.Generator(np.random.PCG64(1)).uniform(0.5, 1.5, out.shape)
    loss = (out * out * leaf(dev, weights, tracked=False)).sum()
    gradients = backward(loss)
    return loss, [gradient(gradients, x) for x in leaves]


def test_every_op_has_a_case() -> None:
    assert set(CASES) == set(OPERATIONS) - WITHOUT_DERIVATIVE | {"rfft"}


def test_every_declaration_is_reached() -> None:
    reached: set[str | None] = set()
    for cases in CASES.values():
        for case in cases:
            dev, recorder = watched("none")
            case.function(*[leaf(dev, array) for array in case.operands()])
            reached.update(event.op for event in of_type(recorder.events, NodeCreated))
    assert set(DECLARATIONS) <= reached


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("name", "index"), ALL, ids=IDS)
def test_gradient_is_the_central_difference(name: str, index: int) -> None:
    case = CASES[name][index]
    arrays = case.operands()
    rng = np.random.Generator(np.random.PCG64(2))
    direction = [rng.normal(size=array.shape) for array in arrays]
    h = 1e-6
    for over_views in (False, True):
        _, none = loss_and_gradients(case, arrays, "none", over_views)
        _, balanced = loss_and_gradients(case, arrays, "balanced", over_views)
        assert same_bits(none, balanced)
        above, below = (
            loss_and_gradients(
                case, [a + s * h * d for a, d in zip(arrays, direction)], "none", over_views
            )[0].item()
            for s in (1.0, -1.0)
        )
        gradients = [g.swapaxes(0, -1) if over_views else g for g in none]
        slope = sum(float(np.sum(g * d)) for g, d in zip(gradients, direction))
        assert slope == pytest.approx((above - below) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("name", "index"), ALL, ids=IDS)
def test_an_overwritten_gradient_gives_the_same_bits_in_the_same_dtype(
    name: str, index: int
) -> None:
    """The sum's gradient is never overwritten; the product's, which is the same, always is."""
    case = CASES[name][index]
    for dtype, strategy in product(("float32", "float64"), STRATEGIES):
        results = []
        for overwritten in (False, True):
            dev = unwatched(strategy)
            leaves = [dev.tensor(array).require_grad() for array in case.operands(dtype)]
            out = case.function(*leaves)
            assert out.dtype == dtype
            gradients = backward((out * 1.0 if overwritten else out).sum())
            results.append([gradient(gradients, x) for x in leaves])
        assert same_bits(*results)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "index"), ALL, ids=IDS)
def test_a_gradient_handed_on_is_not_written_to(name: str, index: int) -> None:
    """The op's gradient is another's too, and what it hands on is added to: neither may change.

    The loss has the op's branch last, so that its steps run before the others of the same depth.
    """
    case = CASES[name][index]
    dev = unwatched("none")
    leaves = [leaf(dev, array) for array in case.operands()]
    alone = backward(case.function(*leaves).sum())
    dev = unwatched("none")
    users = [leaf(dev, array) for array in case.operands()]
    out = case.function(*users)
    other = leaf(dev, np.zeros(out.shape))
    loss = other.sum() * 0.0
    for user in users:
        loss = loss + (user * 0.5).sum()
    gradients = backward(loss + ((out + other) * 1.0).sum())
    np.testing.assert_array_equal(gradient(gradients, other), np.ones(out.shape))
    for before, user in zip(leaves, users):
        expected = gradient(alone, before) + 0.5
        np.testing.assert_allclose(gradient(gradients, user), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("name", "index"), ALL, ids=IDS)
def test_a_region_around_an_op_changes_no_bit(name: str, index: int) -> None:
    """Memory-bound or not, the op's output is computed again for the square that follows it."""
    case = CASES[name][index]
    results = []
    for wrap in (None, checkpoint):
        dev = unwatched("none")
        leaves = [leaf(dev, array) for array in case.operands()]

        def squared(*operands: Tensor) -> Tensor:
            out = case.function(*operands)
            return out * out

        out = squared(*leaves) if wrap is None else wrap(squared)(*leaves)
        gradients = backward(out.sum())
        results.append([out.numpy(), *(gradient(gradients, x) for x in leaves)])
    assert same_bits(*results)


A = np.array([[0.5, -1.25], [2.0, 0.75]])
B = np.array([[1.5, 0.25], [-0.5, 3.0]])
ONES = np.ones((2, 2))

# Program of a and b, gradient of a, gradient of b. Numbers are exact in binary.
SHARED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Array, Array]] = {
    "used three times": (lambda a, b: a * a + a * b + a, 2 * A + B + 1, A),
    "add to itself": (lambda a, b: (a + a) * b, 2 * B, 2 * A),
    "minus itself": (lambda a, b: (a - a) * b, 0 * B, 0 * A),
    "root is a sum": (lambda a, b: a + b, ONES, ONES),
    "root is a difference": (lambda a, b: a - b, ONES, -ONES),
    "both operands get one array, then more": (
        lambda a, b: (a + b) * 3.0 + (a * a) + (b * b),
        3 + 2 * A,
        3 + 2 * B,
    ),
    "more comes first": (
        lambda a, b: (a * a) + (b * b) + (a + b) * 3.0,
        3 + 2 * A,
        3 + 2 * B,
    ),
    "one array through two sums": (
        lambda a, b: ((a + b) + (b + a)) * b,
        2 * B,
        2 * A + 4 * B,
    ),
    "a view of what the other operand holds": (
        lambda a, b: (a + a.transpose()) * b,
        B + B.T,
        A + A.T,
    ),
    "a chain of views": (
        lambda a, b: (a.reshape([4]).reshape([2, 2]).transpose() + b) * b + b.transpose(),
        B.T,
        A.T + 2 * B + 1,
    ),
    "views, then overwriting ops": (
        lambda a, b: ((a + b).transpose() * -1.0).neg() + (a + b).neg() * 2.0,
        -ONES,
        -ONES,
    ),
    "an intermediate that a sum and a product share": (
        lambda a, b: ((s := a * b) + s.transpose()) * s,
        (2 * A * B + 2 * (A * B).T) * B,
        (2 * A * B + 2 * (A * B).T) * A,
    ),
    "expand to the same shape": (lambda a, b: (a.expand([2, 2]) + a) * b, 2 * B, 2 * A),
    "pieces of one gradient": (
        lambda a, b: cat([a, b, a], 0)[0:6, 0:2] * 2.0 + cat([b, b, b], 0),
        4 * ONES,
        5 * ONES,
    ),
    "whole, row and column": (
        lambda a, b: (a + sum_dim(b, 0)) + (sum_dim(a, 1) + b),
        3 * ONES,
        3 * ONES,
    ),
    "detached copy": (lambda a, b: (a * b) * (a * b).detach(), A * B * B, A * A * B),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SHARED)
def test_a_gradient_that_two_hold_is_never_overwritten(name: str, strategy: str) -> None:
    program, of_a, of_b = SHARED[name]
    dev = unwatched(strategy)
    a, b = leaf(dev, A), leaf(dev, B)
    gradients = backward(program(a, b))
    np.testing.assert_array_equal(gradient(gradients, a), of_a)
    np.testing.assert_array_equal(gradient(gradients, b), of_b)
    np.testing.assert_array_equal(a.numpy(), A)
    np.testing.assert_array_equal(b.numpy(), B)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_relu_is_flat_where_the_rest_is_infinitely_steep(strategy: str) -> None:
    """Burn fills the gradient with zeros there; zero times infinity would be nan."""
    dev = unwatched(strategy)
    x = leaf(dev, [-1.0, 4.0])
    with np.errstate(divide="ignore"):
        gradients = backward(x.relu().sqrt().sum())
    np.testing.assert_array_equal(gradient(gradients, x), [0.0, 0.25])


def test_the_gradient_of_a_maximum_goes_to_the_first() -> None:
    x = leaf(device().autodiff(), [[2.0, 5.0, 5.0], [1.0, 0.0, 1.0]])
    gradients = backward(max_dim(x, 1))
    np.testing.assert_array_equal(gradient(gradients, x), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize("name", ["abs", "relu"])
def test_the_derivative_at_a_kink_is_zero(name: str) -> None:
    x = leaf(device().autodiff(), [0.0])
    assert gradient(backward(OPERATIONS[name](x)), x).item() == 0.0


def test_the_gradient_of_a_division_by_zero_is_infinite() -> None:
    x = leaf(device().autodiff(), [1.0])
    with np.errstate(divide="ignore"):
        assert gradient(backward(x / 0.0), x).item() == np.inf


@pytest.mark.parametrize("op", ["mean", "mean_dim", "var"])
def test_a_count_of_many_elements_leaves_the_dtype(op: str) -> None:
    """NumPy 1 takes a whole number of 65,536 or more for one that float32 cannot hold."""
    x = unwatched("none").tensor(np.ones((70_000, 1)), "float32").require_grad()
    y = getattr(x, op)(*([] if op == "mean" else [0]))
    assert y.dtype == "float32"
    assert gradient(backward(y.sum()), x).dtype == np.float32
