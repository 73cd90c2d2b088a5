"""The singular value decomposition as an op: gradient, broadening, what it holds, its name."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from ckptcli import Tensor
from ckptcli.autodiff.ops.svd import svd
from ckptcli.autodiff.regions import checkpoint
from ckptcli.checkpoint.policies import save_only_these_names
from ckptcli.errors import ShapeError
from tests.helpers import backward, gradient, held_ids, leaf, recomputed, unwatched, watched
from tests.strict_backend import strict_device

Array = NDArray[Any]


def random(seed: int, *shape: int) -> Array:
    return np.random.Generator(np.random.PCG64(seed)).normal(size=shape)


def parts(packed: Array) -> tuple[Array, Array, Array]:
    n = (len(packed) - 1) // 2
    return packed[:n], packed[n], packed[n + 1 :]


def truncated(x: Tensor, rank: int, weights: Tensor) -> Tensor:
    """A loss that no sign of a singular vector changes: of the best approximation of a rank."""
    n = x.shape[0]
    factors = svd(x, rank)
    u, s, v = factors[0:n], factors[n : n + 1], factors[n + 1 :]
    return ((u * s.sqrt()).matmul((v * s.sqrt()).transpose()) * weights).sum()


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_the_parts_multiply_to_the_matrix(n: int) -> None:
    x = random(n, n, n)
    for dev in (unwatched("none"), strict_device().autodiff()):
        u, s, v = parts(leaf(dev, x).svd().numpy())
        np.testing.assert_allclose(u * s @ v.T, x, atol=1e-12)
        np.testing.assert_allclose(u.T @ u, np.eye(n), atol=1e-12)
        assert np.all(s[:-1] >= s[1:])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "rank"), [(3, 3), (6, 2), (12, 5), (20, 20)])
def test_the_gradient_is_the_central_difference(n: int, rank: int, seed: int) -> None:
    x, weights, direction = (random(3 * seed + i, n, n) for i in range(3))

    def loss(array: Array) -> tuple[Tensor, Tensor]:
        dev = unwatched("none")
        parameter = leaf(dev, array)
        return truncated(parameter, rank, leaf(dev, weights, tracked=False)), parameter

    root, parameter = loss(x)
    slope = np.sum(gradient(backward(root), parameter) * direction)
    h = 1e-6
    difference = (loss(x + h * direction)[0].item() - loss(x - h * direction)[0].item()) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_fewer_columns_give_the_gradient_of_all_of_them() -> None:
    """What is saved by knowing that the other columns have no cotangents changes nothing."""
    x, weights = random(0, 9, 9), random(1, 19, 4)
    results = []
    for columns in (4, None):
        dev = unwatched("none")
        parameter = leaf(dev, x)
        out = svd(parameter, columns)[:, :4] * leaf(dev, weights, tracked=False)
        results.append(gradient(backward(out.sum()), parameter))
    np.testing.assert_allclose(*results, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_without_broadening_two_zeros_give_nan(strategy: str) -> None:
    """The rule of libraries divides 0 by 0; broadened, the pair gives 0."""
    x = np.diag([2.0, 1.0, 0.0, 0.0])
    for eps, is_finite in ((0.0, False), (1e-12, True)):
        dev = unwatched(strategy)
        parameter = leaf(dev, x)
        with dev.backend.quiet():
            found = gradient(backward(svd(parameter, 2, eps).sum()), parameter)
        assert np.isfinite(found).all() == is_finite


def test_without_broadening_separate_values_give_the_same_gradient() -> None:
    x = random(4, 5, 5)
    results = []
    for eps in (0.0, 1e-12):
        parameter = leaf(unwatched("none"), x)
        with parameter.device.backend.quiet():
            results.append(gradient(backward((svd(parameter, 3, eps) ** 3).sum()), parameter))
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_a_matrix_that_is_not_finite_gives_nan() -> None:
    for dev in (unwatched("none"), strict_device().autodiff()):
        assert np.isnan(leaf(dev, [[1.0, np.nan], [0.0, 1.0]]).svd().numpy()).all()


def test_it_holds_its_output_and_nothing_else() -> None:
    x = leaf(unwatched("none"), random(0, 4, 4))
    packed = x.svd()
    assert held_ids(packed) == {packed.node.id}


def test_a_dropped_graph_is_freed_at_once() -> None:
    """The node lists its own value without being a cycle."""
    gc.disable()
    try:
        root = svd(leaf(unwatched("none"), random(0, 4, 4)), 2).sum()
        (values,) = [
            weakref.ref(node.saved_values[0])
            for node in (root.node.parents[0].parents[0],)
            if node.saved
        ]
        assert values() is not None
        del root
        assert values() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("names", "again"), [((), ["svd"]), (("svd",), [])])
def test_its_name_inside_a_region_saves_the_decomposition(
    names: tuple[str, ...], again: list[str]
) -> None:
    """The name is on the value that the gradient reads: nothing of it runs again."""
    dev, recorder = watched("none")
    x = leaf(dev, random(0, 5, 5))
    product = checkpoint(lambda a: svd(a, 2)[:, :1] * 1.5, save_only_these_names(*names))
    backward((product(x) ** 2).sum())
    ops = {node.node_id: node.op for node in recorder.events if hasattr(node, "parents")}
    assert [ops[node] for node in recomputed(recorder.events) if ops[node] == "svd"] == again


@pytest.mark.parametrize(
    ("shape", "arguments", "reason"),
    [
        ((2, 3), {}, r"square matrix, got shape \[2, 3\]"),
        ((4,), {}, r"square matrix, got shape \[4\]"),
        ((0, 0), {}, r"square matrix"),
        ((3, 3), {"columns": 4}, "cannot give 4 columns"),
        ((3, 3), {"columns": 0}, "cannot give 0 columns"),
        ((3, 3), {"eps": -1.0}, "eps = -1.0"),
        ((3, 3), {"eps": float("nan")}, "eps = nan"),
    ],
)
def test_what_it_does_not_take(
    shape: tuple[int, ...], arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ShapeError, match=reason):
        svd(leaf(unwatched("none"), np.ones(shape)), **arguments)


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [32, 33, 200, 512])
def test_the_bits_are_the_same_for_every_number_of_threads(n: int, dtype: str) -> None:
    x = random(n, n, n).astype(dtype)
    packed = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            packed.append(leaf(unwatched("none"), x).svd().numpy().tobytes())
    assert packed[0] == packed[1]


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_the_threads_are_afterwards_what_they_were(value: float) -> None:
    x = np.full((64, 64), value)
    before = blas_threads()
    with ThreadPoolExecutor(4) as several:
        list(several.map(lambda _: leaf(unwatched("none"), x).svd(), range(40)))
    assert blas_threads() == before
    with threadpool_limits(limits=2, user_api="blas"):
        limited = blas_threads()
        leaf(unwatched("none"), x).svd()
        assert blas_threads() == limited
