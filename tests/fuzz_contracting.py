"""The ops that contract, pool and resize, and their forms in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from tests.fuzz_programs import Program, Random, broadcast_shapes, drawn_shape

Makers = dict[str, Callable[[Random], Program]]
MILD: dict[str, Any] = {"kind": "mild", "atol": 2e-5, "rtol": 1e-4}
FINITE: dict[str, Any] = {"kind": "finite", "atol": 1e-4, "rtol": 1e-4}


def _matrices(rng: Random) -> Program:
    rows, inner, columns = (int(n) for n in rng.integers(1, 5, 3))
    left, right = broadcast_shapes(rng, 2)
    shapes = [(*left[1:], rows, inner), (*right[1:], inner, columns)]
    return Program(lambda a, b: a @ b, torch.matmul, shapes, **FINITE)


def _layer(rng: Random) -> Program:
    inputs, outputs = (int(n) for n in rng.integers(1, 5, 2))
    x = (*drawn_shape(rng), inputs)
    shapes: list[tuple[int, ...]] = [x, (inputs, outputs)]
    if rng.random() < 0.5:
        shapes.append((outputs,))
    theirs = lambda x, w, b=None: x @ w if b is None else x @ w + b  # noqa: E731
    return Program(lambda x, w, *b: x.linear(w, *b), theirs, shapes, **FINITE)


def _convolution(dims: int, transposed: bool) -> Callable[[Random], Program]:
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"

    def make(rng: Random) -> Program:
        groups = int(rng.integers(1, 3))
        inputs, outputs = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
        kernel = [int(n) for n in rng.integers(1, 4, dims)]
        stride, dilation = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        padding = int(rng.integers(0, 2))
        size = [(k - 1) * dilation + 1 + int(rng.integers(0, 3)) for k in kernel]
        weight = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
        shapes = [(2, inputs, *size), (*weight, *kernel), (outputs,)]
        more = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if transposed and min((n - 1) * stride for n in size) < 2 * padding:
            more["padding"] = 0
        theirs = getattr(functional, name)
        return Program(
            lambda x, w, b: getattr(x, name)(w, b, **more),
            lambda x, w, b: theirs(x, w, b, **more),
            shapes,
            **FINITE,
        )

    return make


def _averages(dims: int) -> Callable[[Random], Program]:
    def make(rng: Random) -> Program:
        kernel, stride = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        padding = int(rng.integers(0, kernel // 2 + 1))
        counted = bool(rng.random() < 0.5)
        shape = (1, 2, *[int(n) for n in rng.integers(kernel, 7, dims)])
        name = f"avg_pool{dims}d"
        theirs = getattr(functional, name)
        return Program(
            lambda x: getattr(x, name)(kernel, stride, padding, counted),
            lambda x: theirs(x, kernel, stride, padding, count_include_pad=counted),
            [shape],
            **MILD,
        )

    return make


def _adaptive(dims: int) -> Callable[[Random], Program]:
    def make(rng: Random) -> Program:
        size = [int(n) for n in rng.integers(1, 5, dims)]
        shape = (1, 2, *[int(n) for n in rng.integers(1, 6, dims)])
        name = f"adaptive_avg_pool{dims}d"
        theirs = getattr(functional, name)
        return Program(lambda x: getattr(x, name)(size), lambda x: theirs(x, size), [shape], **MILD)

    return make


def _largest(dims: int) -> Callable[[Random], Program]:
    """Distinct values: PyTorch leaves open which of equal ones it means."""

    def make(rng: Random) -> Program:
        kernel, stride = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        padding = int(rng.integers(0, kernel // 2 + 1))
        shape = (1, 2, *[int(n) for n in rng.integers(kernel, 7, dims)])
        name = f"max_pool{dims}d"
        theirs = getattr(functional, name)
        return Program(
            lambda x: getattr(x, name)(kernel, stride, padding),
            lambda x: theirs(x, kernel, stride, padding),
            [shape],
            "distinct",
        )

    return make


def _resized(mode: str) -> Callable[[Random], Program]:
    def make(rng: Random) -> Program:
        size = [int(n) for n in rng.integers(1, 6, 2)]
        shape = (1, 2, *[int(n) for n in rng.integers(1, 6, 2)])
        aligned = bool(rng.random() < 0.5)
        more = {} if mode == "nearest" else {"align_corners": aligned}
        return Program(
            lambda x: x.interpolate(size, mode, aligned),
            lambda x: functional.interpolate(x, size, mode=mode, **more),
            [shape],
            **(MILD if mode == "nearest" else FINITE),
        )

    return make


def _normal(rng: Random) -> Program:
    shape = (*drawn_shape(rng, empty=False), 4)
    return Program(
        lambda x, g, b: x.layer_norm(g, b, 1e-2),
        lambda x, g, b: functional.layer_norm(x, (4,), g, b, 1e-2),
        [shape, (4,), (4,)],
        "finite",
        1e-3,
        1e-3,
    )


def _attended(rng: Random) -> Program:
    queries, keys, width = (int(n) for n in rng.integers(1, 4, 3))
    shapes = [(1, 2, queries, width), (1, 2, keys, width), (1, 2, keys, 2)]
    return Program(
        lambda q, k, v: q.attention(k, v),
        lambda q, k, v: torch.softmax(q @ k.mT / math.sqrt(width), -1) @ v,
        shapes,
        **FINITE,
    )


def _crossed(rng: Random) -> Program:
    shape = (3, int(rng.integers(1, 4)))
    return Program(
        lambda a, b: a.cross(b, 0), lambda a, b: torch.cross(a, b, dim=0), [shape] * 2, **FINITE
    )


def _rows(rng: Random) -> Program:
    indices = rng.integers(0, 4, (2, 3))
    places = torch.from_numpy(indices)
    return Program(
        lambda w: w.embedding(indices), lambda w: functional.embedding(places, w), [(4, 3)], **MILD
    )


def _classes(rng: Random) -> Program:
    rows, count = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    classes = rng.integers(0, count, rows)
    wanted = torch.from_numpy(classes)
    return Program(
        lambda x: x.cross_entropy(classes),
        lambda x: functional.cross_entropy(x, wanted).reshape(1),
        [(rows, count)],
        **FINITE,
    )


def _transformed(rng: Random) -> Program:
    from ckptcli import cat

    size = int(rng.integers(1, 7))
    return Program(
        lambda x: cat(x.rfft(1), 0),
        lambda x: torch.cat([(t := torch.fft.rfft(x, dim=1)).real, t.imag], 0),
        [(2, size)],
        **FINITE,
    )


def _gated(rng: Random) -> Program:
    return Program(lambda x: x.glu(1), lambda x: functional.glu(x, 1), [(2, 4)], **FINITE)


def _sloped(rng: Random) -> Program:
    shape = (2, 3, int(rng.integers(1, 4)))
    count = int(rng.choice([1, 3]))
    return Program(
        lambda x, a: x.prelu(a),
        lambda x, a: torch.where(x < 0, x * a.reshape(1, -1, 1), x),
        [shape, (count,)],
        **FINITE,
    )


CONTRACTING: Makers = {
    "matmul": _matrices,
    "linear": _layer,
    "cross": _crossed,
    "embedding": _rows,
    "layer_norm": _normal,
    "attention": _attended,
    "cross_entropy": _classes,
    "rfft": _transformed,
    "glu": _gated,
    "prelu": _sloped,
    **{f"conv{d}d": _convolution(d, False) for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": _convolution(d, True) for d in (1, 2, 3)},
    **{f"avg_pool{d}d": _averages(d) for d in (1, 2)},
    **{f"adaptive_avg_pool{d}d": _adaptive(d) for d in (1, 2, 3)},
    **{f"max_pool{d}d": _largest(d) for d in (1, 2)},
    **{f"interpolate {mode}": _resized(mode) for mode in ("nearest", "bilinear", "bicubic")},
}
