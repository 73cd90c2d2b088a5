"""The ops that reduce, choose or move, and their forms in PyTorch.

At ties and at nan the form is Burn's rule, written with the index that it means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.fuzz_contracting import CONTRACTING, FINITE, MILD
from tests.fuzz_programs import Program, Random, broadcast_shapes, drawn_shape

Makers = dict[str, Callable[[Random], Program]]


def _along(ours: Any, theirs: Any, empty: bool = True, **more: Any) -> Callable[[Random], Program]:
    """A function of x and a dim."""

    def make(rng: Random) -> Program:
        shape = drawn_shape(rng, empty=empty)
        dim = int(rng.integers(-len(shape), len(shape)))
        return Program(lambda x: ours(x, dim), lambda x: theirs(x, dim), [shape], **more)

    return make


def _whole(ours: Any, theirs: Any, empty: bool = True, **more: Any) -> Callable[[Random], Program]:
    return lambda rng: Program(ours, theirs, [drawn_shape(rng, empty=empty)], **more)


def first_extreme(x: Any, dim: int, largest: bool) -> Any:
    """The extreme that keeps its dim, by the first index of it or of nan."""
    find = np.argmax if largest else np.argmin
    index = torch.from_numpy(np.asarray(find(x.detach().numpy(), axis=dim, keepdims=True)))
    return torch.gather(x, dim, index)


def _ordered(x: Any, dim: int, descending: bool) -> Any:
    order = torch.sort(x.detach(), dim=dim, descending=descending, stable=True).indices
    return torch.gather(x, dim, order)


def _running(x: Any, dim: int, largest: bool) -> Any:
    pieces = []
    for end in range(x.shape[dim]):
        pieces.append(first_extreme(x.narrow(dim, 0, end + 1), dim, largest))
    return torch.cat(pieces, dim) if pieces else x * 1.0


def _product(x: Any, dim: int) -> Any:
    """One factor after the other, so that PyTorch's rule is that of products."""
    total = torch.ones_like(x.narrow(dim, 0, 1)) if x.shape[dim] else x.sum(dim, keepdim=True) + 1
    for index in range(x.shape[dim]):
        total = total * x.narrow(dim, index, 1)
    return total


def _running_product(x: Any, dim: int) -> Any:
    pieces: list[Any] = []
    for index in range(x.shape[dim]):
        piece = x.narrow(dim, index, 1)
        pieces.append(piece if not pieces else pieces[-1] * piece)
    return torch.cat(pieces, dim) if pieces else x * 1.0


def _quiet(x: Any, dim: int) -> Any:
    largest = torch.clamp_min(x.detach().amax(dim, keepdim=True), 0.0)
    powers = torch.exp(x - largest)
    return powers / (powers.sum(dim, keepdim=True) + torch.exp(-largest))


REDUCING: Makers = {
    "sum": _whole(lambda x: x.sum(), lambda x: x.sum().reshape(1), **MILD),
    "mean": _whole(lambda x: x.mean(), lambda x: x.mean().reshape(1), False, **MILD),
    "sum_dim": _along(lambda x, d: x.sum_dim(d), lambda x, d: x.sum(d, keepdim=True), **MILD),
    "mean_dim": _along(
        lambda x, d: x.mean_dim(d), lambda x, d: x.mean(d, keepdim=True), False, **MILD
    ),
    "prod": _whole(lambda x: x.prod(), lambda x: _product(x.reshape(-1), 0), **FINITE),
    "prod_dim": _along(lambda x, d: x.prod_dim(d), _product, **FINITE),
    "cumprod": _along(lambda x, d: x.cumprod(d), _running_product, **FINITE),
    "cumsum": _along(lambda x, d: x.cumsum(d), lambda x, d: torch.cumsum(x, d), **MILD),
    "cummax": _along(lambda x, d: x.cummax(d), lambda x, d: _running(x, d, True)),
    "cummin": _along(lambda x, d: x.cummin(d), lambda x, d: _running(x, d, False)),
    "max_dim": _along(lambda x, d: x.max_dim(d), lambda x, d: first_extreme(x, d, True), False),
    "min_dim": _along(lambda x, d: x.min_dim(d), lambda x, d: first_extreme(x, d, False), False),
    "max": _whole(lambda x: x.max(), lambda x: first_extreme(x.reshape(-1), 0, True), False),
    "min": _whole(lambda x: x.min(), lambda x: first_extreme(x.reshape(-1), 0, False), False),
    "max_abs": _whole(
        lambda x: x.max_abs(),
        lambda x: first_extreme(x.reshape(-1).abs(), 0, True),
        False,
        kind="finite",
    ),
    "max_abs_dim": _along(
        lambda x, d: x.max_abs_dim(d),
        lambda x, d: first_extreme(x.abs(), d, True),
        False,
        kind="finite",
    ),
    "sort": _along(lambda x, d: x.sort(d), lambda x, d: _ordered(x, d, False)),
    "sort, descending": _along(
        lambda x, d: x.sort(d, descending=True), lambda x, d: _ordered(x, d, True)
    ),
    "topk": _along(
        lambda x, d: x.topk_with_indices(1, d)[0],
        lambda x, d: _ordered(x, d, True).narrow(d, 0, 1),
        False,
    ),
    "var": _along(
        lambda x, d: x.var(d),
        lambda x, d: x.var(d, keepdim=True) if x.shape[d] > 1 else x * math.nan,
        False,
        **FINITE,
    ),
    "softmax": _along(lambda x, d: x.softmax(d), lambda x, d: torch.softmax(x, d), False, **FINITE),
    "log_softmax": _along(
        lambda x, d: x.log_softmax(d), lambda x, d: torch.log_softmax(x, d), False, **FINITE
    ),
    "softmin": _along(
        lambda x, d: x.softmin(d), lambda x, d: torch.softmax(-x, d), False, **FINITE
    ),
    "quiet_softmax": _along(lambda x, d: x.quiet_softmax(d), _quiet, False, **FINITE),
}


def _moved(ours: Any, theirs: Any) -> Callable[[Random], Program]:
    def make(rng: Random) -> Program:
        shape = drawn_shape(rng)
        dims = tuple(int(d) for d in rng.integers(0, len(shape), 2))
        return Program(lambda x: ours(x, *dims), lambda x: theirs(x, *dims), [shape])

    return make


def _permuted(rng: Random) -> Program:
    shape = drawn_shape(rng)
    axes = [int(a) for a in rng.permutation(len(shape))]
    return Program(lambda x: x.permute(axes), lambda x: x.permute(axes), [shape])


def _indexed(name: str) -> Callable[[Random], Program]:
    """gather, select and the scatters of whole slices along a dim."""

    def make(rng: Random) -> Program:
        shape = drawn_shape(rng, empty=False)
        dim = int(rng.integers(0, len(shape)))
        count = int(rng.integers(1, 5))
        if name.startswith("select"):
            indices: Any = rng.integers(0, shape[dim], count)
            taken = (*shape[:dim], count, *shape[dim + 1 :])
        else:
            taken = (*shape[:dim], count, *shape[dim + 1 :])
            indices = rng.integers(0, shape[dim], taken)
        places = torch.from_numpy(indices)
        if name == "select":
            theirs = lambda x: torch.index_select(x, dim, places)  # noqa: E731
            return Program(lambda x: x.select(dim, indices), theirs, [shape])
        if name == "gather":
            theirs = lambda x: torch.gather(x, dim, places)  # noqa: E731
            return Program(lambda x: x.gather(dim, indices), theirs, [shape])
        if name == "select_add":
            return Program(
                lambda x, v: x.select_add(dim, indices, v),
                lambda x, v: x.index_add(dim, places, v),
                [shape, taken],
                **MILD,
            )
        return Program(
            lambda x, v: x.scatter_add(dim, indices, v),
            lambda x, v: x.scatter_add(dim, places, v),
            [shape, taken],
            **MILD,
        )

    return make


def _scattered_extreme(update: str) -> Callable[[Random], Program]:
    """Element by element: the first that has what is left."""

    def theirs(places: Any) -> Any:
        def extreme(x: Any, values: Any) -> Any:
            rows = []
            for place in range(x.shape[0]):
                candidates = [x[place], *(values[i] for i, p in enumerate(places) if p == place)]
                rows.append(first_extreme(torch.stack(candidates), 0, update == "max")[0])
            return torch.stack(rows)

        return extreme

    def make(rng: Random) -> Program:
        size, count, width = (int(n) for n in rng.integers(1, 5, 3))
        places = rng.integers(0, size, count)
        indices = places.reshape(-1, 1)
        return Program(
            lambda x, v: x.scatter_nd(indices, v, update),
            theirs(places),
            [(size, width), (count, width)],
        )

    return make


def _scattered_once(update: str, theirs: Any, nd: bool) -> Callable[[Random], Program]:
    """Each place at most once, as Burn wants it."""

    def make(rng: Random) -> Program:
        size, width = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        count = int(rng.integers(1, size + 1))
        places = rng.permutation(size)[:count]
        rows = torch.from_numpy(places)
        if nd:
            ours = lambda x, v: x.scatter_nd(places.reshape(-1, 1), v, update)  # noqa: E731
        else:
            spread = np.repeat(places.reshape(-1, 1), width, 1)
            ours = lambda x, v: x.scatter(0, spread, v, update)  # noqa: E731
        return Program(
            ours, lambda x, v: theirs(x, rows, v), [(size, width), (count, width)], **MILD
        )

    return make


def _assigned(x: Any, rows: Any, values: Any) -> Any:
    return x.index_copy(0, rows, values)


def _multiplied(x: Any, rows: Any, values: Any) -> Any:
    return x.index_copy(0, rows, x[rows] * values)


def _sliced(rng: Random) -> Program:
    shape = drawn_shape(rng)
    parts = []
    for size in shape:
        start, stop = sorted(int(n) for n in rng.integers(0, size + 1, 2))
        parts.append(slice(start, stop, int(rng.integers(1, 3))))
    return Program(lambda x: x[tuple(parts)], lambda x: x[tuple(parts)], [shape])


def _masked(name: str) -> Callable[[Random], Program]:
    def make(rng: Random) -> Program:
        shape = drawn_shape(rng)
        mask = rng.random(shape) < 0.5
        there = torch.from_numpy(mask)
        if name == "mask_fill":
            return Program(
                lambda x: x.mask_fill(mask, 2.0), lambda x: x.masked_fill(there, 2.0), [shape]
            )
        if name == "mask_select":
            return Program(lambda x: x.mask_select(mask), lambda x: x[there], [shape])
        return Program(
            lambda x, y: x.mask_where(mask, y), lambda x, y: torch.where(there, y, x), [shape] * 2
        )

    return make


def _joined(rng: Random) -> Program:
    from ckptcli import cat

    shape = drawn_shape(rng)
    dim = int(rng.integers(0, len(shape)))
    shapes = [(*shape[:dim], int(rng.integers(0, 3)), *shape[dim + 1 :]) for _ in range(3)]
    return Program(lambda *xs: cat(xs, dim), lambda *xs: torch.cat(xs, dim), shapes)


def _unfolded(rng: Random) -> Program:
    size, step = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape = (2, int(rng.integers(size, 8)))
    return Program(
        lambda x: x.unfold(1, size, step), lambda x: x.unfold(1, size, step), [shape], **MILD
    )


def _reshaped(x: Any) -> Any:
    return x.reshape([-1, 1]) if math.prod(x.shape) else x


def _expanded(rng: Random) -> Program:
    (small,), whole = broadcast_shapes(rng, 1), None
    whole = [3 if size == 1 else size for size in (1, *small)]
    return Program(lambda x: x.expand(whole), lambda x: x.expand(whole), [small], **MILD)


MOVING: Makers = {
    "swap_dims": _moved(lambda x, a, b: x.swap_dims(a, b), torch.transpose),
    "permute": _permuted,
    "reshape": _whole(_reshaped, _reshaped),
    "flip": _along(lambda x, d: x.flip([d]), lambda x, d: torch.flip(x, [d])),
    "repeat_dim": _along(
        lambda x, d: x.repeat_dim(d, 2), lambda x, d: torch.cat([x, x], d), **MILD
    ),
    "unsqueeze": _along(lambda x, d: x.unsqueeze(d), torch.unsqueeze),
    "expand": _expanded,
    "slice": _sliced,
    "cat": _joined,
    "unfold": _unfolded,
    **{name: _masked(name) for name in ("mask_fill", "mask_select", "mask_where")},
    **{name: _indexed(name) for name in ("select", "gather", "select_add", "scatter_add")},
    "scatter_nd max": _scattered_extreme("max"),
    "scatter_nd min": _scattered_extreme("min"),
    "scatter_nd assign": _scattered_once("assign", _assigned, True),
    "scatter_nd mul": _scattered_once("mul", _multiplied, True),
    "scatter assign": _scattered_once("assign", _assigned, False),
}


STRUCTURAL: Makers = {**REDUCING, **MOVING, **CONTRACTING}
