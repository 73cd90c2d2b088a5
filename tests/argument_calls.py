"""A valid call of every op of a graph file that takes integers, which fuzzers change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

Place = tuple[str | int, ...]
"""Where an integer is: a key of the op, then positions in lists."""

Call = tuple[Sequence[Sequence[int]], dict[str, Any]]
"""The shapes of the operands, and the op with its arguments."""


def _calls() -> Iterator[tuple[str, Sequence[Sequence[int]], dict[str, Any]]]:
    for dims in (1, 2):
        image = [1, 1, *[6] * dims]
        window = {"kernel_size": 2, "stride": 1, "padding": 1}
        for ceil_mode in (True, False):
            more = {"ceil_mode": ceil_mode}
            yield f"avg_pool{dims}d", [image], {**window, **more, "count_include_pad": ceil_mode}
            yield f"max_pool{dims}d", [image], {**window, **more, "dilation": 1}
    for dims in (1, 2, 3):
        ones = [1] * dims
        moves: dict[str, Any] = {"stride": ones, "padding": ones, "dilation": ones, "groups": 2}
        operands = [[1, 2, *[4] * dims], [2, 1, *[2] * dims], [2]]
        yield f"adaptive_avg_pool{dims}d", [[1, 1, *[3] * dims]], {"output_size": [2] * dims}
        yield f"conv{dims}d", operands, moves
        yield f"conv_transpose{dims}d", operands, {**moves, "padding_out": [0] * dims}
    for mode in ("nearest", "bilinear", "bicubic"):
        yield "interpolate", [[1, 1, 3, 3]], {"output_size": [2, 2], "mode": mode}
    yield (
        "deform_conv2d",
        [[1, 1, 3, 3], [1, 8, 4, 4], [1, 1, 2, 2]],
        {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
        | {"weight_groups": 1, "offset_groups": 1},
    )
    for name in ("sum_dim", "mean_dim", "prod_dim", "var", "max_dim", "min_dim", "max_abs_dim"):
        yield name, [[2, 3]], {"dim": 1}
    for name in ("cumsum", "cumprod", "cummin", "cummax", "sort"):
        yield name, [[2, 3]], {"dim": 1}
    for name in ("softmax", "log_softmax", "softmin", "quiet_softmax", "unsqueeze", "squeeze"):
        yield name, [[2, 1, 3]], {"dim": 1}
    for name in ("cat", "cross"):
        yield name, [[2, 3], [2, 3]], {"dim": 1}
    yield "glu", [[2, 4]], {"dim": 1}
    yield "select", [[2, 3]], {"dim": 0, "indices": [0, 1]}
    yield "embedding", [[4, 3]], {"indices": [[0, 1]]}
    yield "gather", [[2, 3]], {"dim": 1, "indices": [[0, 1], [1, 2]]}
    yield "gather_nd", [[2, 3]], {"indices": [[0, 1], [1, 2]]}
    yield "scatter_nd", [[2, 3], [2]], {"indices": [[0, 1], [1, 2]], "update": "add"}
    for name in ("select_add", "select_assign"):
        yield name, [[2, 3], [2, 3]], {"dim": 0, "indices": [0, 1]}
    for name in ("scatter", "scatter_add"):
        yield name, [[2, 3], [2, 3]], {"dim": 1, "indices": [[0, 1, 2], [1, 2, 0]]}
    yield "reshape", [[2, 3]], {"shape": [3, 2]}
    yield "flatten", [[2, 3, 2]], {"start_dim": 0, "end_dim": 1}
    yield "slice", [[4, 3]], {"ranges": [[0, 2, 1], [0, 3]]}
    yield "slice_assign", [[4, 3], [2, 3]], {"ranges": [[0, 2, 1], [0, 3]]}
    yield "narrow", [[4, 3]], {"dim": 0, "start": 1, "length": 2}
    yield "irfft", [[2, 3], [2, 3]], {"dim": 1, "length": 4}
    yield "powi_scalar", [[2, 3]], {"c": 2}
    yield "swap_dims", [[2, 3]], {"dim1": 0, "dim2": 1}
    for name in ("permute", "flip"):
        yield name, [[2, 3]], {"axes": [1, 0]}
    yield "expand", [[1, 3]], {"shape": [2, 1, 3]}
    yield "repeat_dim", [[2, 3]], {"dim": 0, "times": 2}
    yield "svd", [[3, 3]], {"columns": 2}
    yield "unfold", [[6]], {"dim": 0, "size": 2, "step": 1}
    yield "cross_entropy", [[2, 3]], {"classes": [0, 1], "pad_classes": [2]}
    yield (
        "ctc_loss",
        [[4, 1, 3]],
        {"targets": [[1, 2]], "input_lengths": [4], "target_lengths": [2], "blank": 0},
    )


CALLS: list[Call] = [(shapes, {"op": name, **keys}) for name, shapes, keys in _calls()]


def places(call: dict[str, Any]) -> list[Place]:
    """Where a call has integers."""
    found: list[Place] = []
    left: list[tuple[Place, Any]] = [((key,), value) for key, value in call.items()]
    while left:
        place, value = left.pop()
        if isinstance(value, list):
            left += [((*place, index), each) for index, each in enumerate(value)]
        elif type(value) is int:
            found.append(place)
    return sorted(found, key=str)


def changed(call: dict[str, Any], place: Place, value: int) -> dict[str, Any]:
    """The call with another integer in one place."""
    new: Any = copy.deepcopy(call)
    inner = new
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return dict(new)
