"""How large an op's work is by what a graph file says alone: found before anything is computed.

Lower bounds in elements: of the result, or of an input with its padding, made on the way. An
op that is not listed makes no more than its operands' sizes and its data say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ELEMENT_BYTES = 8
PLACE_ELEMENTS = 32
"""What a place of a pooled or interpolated axis takes: its sources and weights, as Python lists."""

LARGEST_BYTES = 2**62
"""No array is larger, whatever memory there is."""

Arguments = Mapping[str, Any]
Shapes = Sequence[tuple[int, ...]]


def needed_bytes(name: str, shapes: Shapes, arguments: Arguments) -> int:
    """The least that op `name` needs on operands of these shapes; 0 where that is not known."""
    count = _COUNTS.get(name)
    return 0 if count is None or not shapes else ELEMENT_BYTES * count(shapes, arguments)


def limit_bytes() -> int:
    """What an allocation can have: the process's limit, which the memory check sets."""
    soft = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(soft, LARGEST_BYTES) if soft >= 0 else LARGEST_BYTES


def _spread(value: int | list[int] | None, count: int, default: int) -> list[int]:
    """A size for each axis, from one for all or a list."""
    if value is None:
        return [default] * count
    sizes = value if isinstance(value, list) else [value] * count
    return sizes[:count] or [default] * count


def _outer(shape: tuple[int, ...], dims: int) -> int:
    return math.prod(shape[:-dims]) if len(shape) > dims else 1


def _elements(outer: int, sizes: Sequence[int]) -> int:
    return max(outer * math.prod(max(0, size) for size in sizes), PLACE_ELEMENTS * max(sizes))


def _expand(shapes: Shapes, arguments: Arguments) -> int:
    return math.prod(max(size, 1) for size in arguments["shape"])


def _repeat(shapes: Shapes, arguments: Arguments) -> int:
    return math.prod(shapes[0]) * max(0, int(arguments["times"]))


def _irfft(shapes: Shapes, arguments: Arguments) -> int:
    return max(0, int(arguments.get("length") or 0))


def _resized(shapes: Shapes, arguments: Arguments) -> int:
    sizes = arguments["output_size"]
    dims = max(1, len(shapes[0]) - 2)
    spread = _spread(sizes, dims, 1)
    return _elements(_outer(shapes[0], len(spread)), spread)


def _padded(dims: int) -> Callable[[Shapes, Arguments], int]:
    def count(shapes: Shapes, arguments: Arguments) -> int:
        paddings = _spread(arguments.get("padding"), dims, 0)
        kernels = _spread(arguments.get("kernel_size"), dims, 1)
        dilations = _spread(arguments.get("dilation"), dims, 1)
        reach = [
            (k - 1) * d + 1 if arguments.get("ceil_mode") else 0 for k, d in zip(kernels, dilations)
        ]
        sizes = [max(n + 2 * p, r) for n, p, r in zip(shapes[0][-dims:], paddings, reach)]
        return _elements(_outer(shapes[0], dims), sizes)

    return count


def _transposed(dims: int) -> Callable[[Shapes, Arguments], int]:
    def count(shapes: Shapes, arguments: Arguments) -> int:
        strides = _spread(arguments.get("stride"), dims, 1)
        dilations = _spread(arguments.get("dilation"), dims, 1)
        outs = _spread(arguments.get("padding_out"), dims, 0)
        kernel = shapes[1][-dims:] if len(shapes) > 1 else (1,) * dims
        sizes = [
            (n - 1) * s + d * (k - 1) + o + 1
            for n, s, d, k, o in zip(shapes[0][-dims:], strides, dilations, kernel, outs)
        ]
        return math.prod(max(0, size) for size in sizes)

    return count


_COUNTS: dict[str, Callable[[Shapes, Arguments], int]] = {
    "expand": _expand,
    "repeat_dim": _repeat,
    "irfft": _irfft,
    "interpolate": _resized,
    "deform_conv2d": _padded(2),
    **{f"adaptive_avg_pool{dims}d": _resized for dims in (1, 2, 3)},
    **{f"avg_pool{dims}d": _padded(dims) for dims in (1, 2)},
    **{
        f"max_pool{dims}d{more}": _padded(dims) for dims in (1, 2) for more in ("", "_with_indices")
    },
    **{f"conv{dims}d": _padded(dims) for dims in (1, 2, 3)},
    **{f"conv_transpose{dims}d": _transposed(dims) for dims in (1, 2, 3)},
}
