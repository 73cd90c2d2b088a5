"""The workspace of a kernel: what a call of the namespace allocates and frees again inside itself.

No storage of the ledger, but memory that must be free all the same. tracemalloc sees every array
that NumPy allocates, and Python's own objects with them; it looks at the first call of each kind
alone and is off otherwise, since what a kernel takes follows from the kind: the function, shapes,
strides and dtypes, and the static arguments.

Invariant: the figure is a bound of what arrays take inside the call, and the same in every run. It
is how far memory rose above what the call leaves behind, rounded up to whole granules; a rise that
Python's objects alone can make counts as nothing. What a library takes past Python's and NumPy's
allocators (LAPACK's work arrays, the buffers of the BLAS) is seen by nobody.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any

PYTHON_OBJECTS_BYTES = 4096
"""Up to this a rise is taken for frames, tuples and views: in blocks, some 2 KiB."""

GRANULE_BYTES = 4096
"""More than what Python's objects differ by from run to run, some hundred bytes."""


class Workspaces:
    """The workspace of each kind of call that was seen in one pass."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, int]:
        """The result of the call, and the workspace that it needs beside its result."""
        try:
            kind = (function, *_traits(args), *_traits(tuple(kwargs.items())))
        except TypeError:
            result, rise_bytes = _watched(function, args, kwargs)
            return result, workspace_bound(rise_bytes)
        if kind in self._known:
            return function(*args, **kwargs), self._known[kind]
        result, rise_bytes = _watched(function, args, kwargs)
        self._known[kind] = bound_bytes = workspace_bound(rise_bytes)
        return result, bound_bytes


def workspace_bound(rise_bytes: int) -> int:
    """The bound on the arrays of a call during which memory rose by so much."""
    if rise_bytes <= PYTHON_OBJECTS_BYTES:
        return 0
    return -(-rise_bytes // GRANULE_BYTES) * GRANULE_BYTES


def _watched(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, int]:
    """The result, and how far memory rose during the call above what it leaves behind."""
    was_on = tracemalloc.is_tracing()
    if was_on:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start(1)
    try:
        result = function(*args, **kwargs)
        left_bytes, highest_bytes = tracemalloc.get_traced_memory()
    finally:
        if not was_on:
            tracemalloc.stop()
    return result, highest_bytes - left_bytes


_array_traits = attrgetter("shape", "strides", "dtype")


def _traits(arguments: tuple[Any, ...]) -> list[Hashable]:
    """What of arguments a workspace follows from: of arrays and floats no value.

    Of an array also whether it is the last argument, to which an element-wise function writes.

    Raises:
        TypeError: an argument that does not tell.
    """
    traits: list[Hashable] = []
    last = arguments[-1] if len(arguments) > 2 else None
    for argument in arguments:
        if hasattr(argument, "strides"):
            traits.append(_array_traits(argument))
            if argument is last:
                traits.append("last")
        elif argument is None or isinstance(argument, float):
            traits.append(type(argument).__name__)
        elif isinstance(argument, int | str):
            traits += type(argument).__name__, argument
        elif isinstance(argument, tuple | list):
            traits.append(tuple(_traits(tuple(argument))))
        elif isinstance(argument, slice):
            traits += "slice", argument.start, argument.stop, argument.step
        else:
            raise TypeError(f"an argument of type {type(argument).__name__}")
    return traits


def tracemalloc_is_exact() -> bool:
    """Whether tracemalloc sees one array as one array; some NumPy builds counted each twice."""
    import numpy as np

    size_bytes = 2**20
    _, rise_bytes = _watched(lambda: np.empty(size_bytes, dtype=np.uint8).shape, (), {})
    return abs(rise_bytes - size_bytes) < PYTHON_OBJECTS_BYTES
