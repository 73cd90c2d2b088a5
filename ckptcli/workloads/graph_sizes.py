"""How large an op's work is by what a graph file says alone: found before anything is computed.

Lower bounds in elements, of the largest array that an op makes on the way: an input with its
padding, its windows, or the result. An op that is not listed makes no more than its operands' sizes
and its data say. What an op refuses for its arguments counts nothing: it does so before any work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ckptcli.autodiff.spatial import Sizes, for_each
from ckptcli.autodiff.windows import Window
from ckptcli.errors import CkptError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ELEMENT_BYTES = 8
MEAN_ELEMENTS, RESIZED_ELEMENTS = 16, 48
"""What a place of a pooled or a resized axis takes at least: its sources and weights, in dicts."""

LARGEST_BYTES = 2**62
"""No array is larger, whatever memory there is."""

Arguments = Mapping[str, Any]
Shapes = Sequence[tuple[int, ...]]


def needed_bytes(name: str, shapes: Shapes, arguments: Arguments) -> int:
    """The least that op `name` needs on operands of these shapes; 0 where that is not known."""
    count = _COUNTS.get(name)
    if count is None:
        return 0
    try:
        return ELEMENT_BYTES * max(0, count(shapes, arguments))
    except (CkptError, ValueError):  # the op says what is wrong, in its own words
        return 0


def limit_bytes() -> int:
    """What an allocation can have: the process's limit, which the memory check sets."""
    soft = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(soft, LARGEST_BYTES) if soft >= 0 else LARGEST_BYTES


def _outer(shape: tuple[int, ...], dims: int) -> int:
    if len(shape) != dims + 2:
        raise ValueError(f"rank {len(shape)} for {dims} axes")
    return math.prod(shape[:2])


def _moves(dims: int, kernel: Sizes, arguments: Arguments) -> list[Window]:
    each = zip(
        for_each("kernel_size", kernel, dims),
        for_each("stride", arguments.get("stride", 1), dims),
        for_each("dilation", arguments.get("dilation", 1), dims),
    )
    return [Window(*sizes) for sizes in each]


def _padded(
    shape: tuple[int, ...], moves: Sequence[Window], arguments: Arguments
) -> Iterator[tuple[int, int]]:
    """Of each axis, its size with all that is put around it, and how many windows it has."""
    paddings = for_each("padding", arguments.get("padding", 0), len(moves))
    for size, zeros, window in zip(shape[2:], paddings, moves):
        padded = size + 2 * zeros
        padded += window.missing(padded) if arguments.get("ceil_mode") else 0
        yield padded, window.count(padded)


def _expand(shapes: Shapes, arguments: Arguments) -> int:
    """The gradient of what is itself a view."""
    sizes = arguments["shape"]
    if min(sizes, default=0) < -1:
        raise ValueError(f"size {sizes}")
    kept = (1,) * (len(sizes) - len(shapes[0])) + shapes[0]
    return math.prod(before if size == -1 else size for size, before in zip(sizes, kept))


def _repeat(shapes: Shapes, arguments: Arguments) -> int:
    return math.prod(shapes[0]) * int(arguments["times"])


def _resized(dims: int) -> Callable[[Shapes, Arguments], int]:
    def count(shapes: Shapes, arguments: Arguments) -> int:
        sizes = for_each("output_size", arguments["output_size"], dims)
        if min(sizes) < 1:
            raise ValueError(f"size {sizes}")
        return max(_outer(shapes[0], dims) * math.prod(sizes), RESIZED_ELEMENTS * max(sizes))

    return count


def _averaged(dims: int) -> Callable[[Shapes, Arguments], int]:
    """What other libraries pad, though here a place knows which elements it is made of."""

    def count(shapes: Shapes, arguments: Arguments) -> int:
        outer = _outer(shapes[0], dims)
        moves = _moves(dims, arguments["kernel_size"], arguments)
        axes = list(_padded(shapes[0], moves, arguments))
        padded = outer * math.prod(padded for padded, _ in axes)
        return max(padded, MEAN_ELEMENTS * max(places for _, places in axes))

    return count


def _windowed(dims: int) -> Callable[[Shapes, Arguments], int]:
    """x with its padding, then one axis after the other in windows."""

    def count(shapes: Shapes, arguments: Arguments) -> int:
        kernel = arguments["kernel_size"] if "kernel_size" in arguments else shapes[1][2:]
        moves = _moves(dims, kernel, arguments)
        axes = list(_padded(shapes[0], moves, arguments))
        elements = _outer(shapes[0], dims) * math.prod(padded for padded, _ in axes)
        most = elements
        for (padded, places), window in zip(axes, moves):
            elements = elements // max(padded, 1) * places * window.size
            most = max(most, elements)
        return most

    return count


def _transposed(dims: int) -> Callable[[Shapes, Arguments], int]:
    """The windows, then one axis after the other, from the last, added up to its length."""

    def count(shapes: Shapes, arguments: Arguments) -> int:
        x, weight = shapes[:2]
        elements = x[0] * math.prod(x[2:]) * math.prod(weight[1:])
        most = elements
        moves = _moves(dims, weight[2:], arguments)
        outs = for_each("padding_out", arguments.get("padding_out", 0), dims)
        for size, window, out in reversed(list(zip(x[2:], moves, outs))):
            window.check()
            length = (size - 1) * window.stride + window.span + out
            elements = elements // max(1, size * window.size) * length
            most = max(most, elements)
        return most

    return count


_COUNTS: dict[str, Callable[[Shapes, Arguments], int]] = {
    "expand": _expand,
    "repeat_dim": _repeat,
    "interpolate": _resized(2),
    **{f"adaptive_avg_pool{dims}d": _resized(dims) for dims in (1, 2, 3)},
    **{f"avg_pool{dims}d": _averaged(dims) for dims in (1, 2)},
    **{f"max_pool{dims}d": _windowed(dims) for dims in (1, 2)},
    **{f"conv{dims}d": _windowed(dims) for dims in (1, 2, 3)},
    **{f"conv_transpose{dims}d": _transposed(dims) for dims in (1, 2, 3)},
}
