"""Which way a program went: the masks, winners and signs that its gradient follows.

They are read off the tape, so that a choice through which no gradient flows, such as the maximum
that a softmax subtracts, does not count. What cannot be seen here, a value inside a region that is
not held among it, the differences themselves have to tell.

Invariant: two passes with the same branches differentiate by the same formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from ckptcli.autodiff.backward import collect
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.base import Backend
from ckptcli.graph import Node

BENT = frozenset({"relu", "abs"})
"""Ops that bend at 0 and keep nothing but their operand to tell the side."""

RUNNING = {"cummax": np.maximum, "cummin": np.minimum}
"""Ops that keep their operand to find in it where the extreme is reached."""


def branches(root: Tensor, backend: Backend) -> bytes:
    """A digest of the ops that lead to `root` and of which way each one went."""
    digest = blake2b(digest_size=16)
    if root.node.op is not None:
        for node in collect(root.node):
            assert node.op is not None
            digest.update(node.op.name.encode())
            for choice in _choices(node, backend):
                digest.update(np.ascontiguousarray(choice).tobytes())
    return digest.digest()


def _choices(node: Node, backend: Backend) -> Iterator[Any]:
    """Masks and indices among the op's arguments and state; the side, where a value tells it."""
    for array in (*_arrays(node.params), *_arrays(node.state)):
        if _is_whole(array):
            yield backend.to_numpy(array)
    assert node.op is not None
    if node.op.name in BENT and node.saved_values[0] is not None:
        yield np.sign(backend.to_numpy(node.saved_values[0])).astype(np.int8)
    running = RUNNING.get(node.op.name)
    if running is not None:
        for array in _arrays(node.state):
            values = backend.to_numpy(array)
            yield values == running.accumulate(values, axis=node.params)


def _arrays(held: Any) -> Iterator[Any]:
    """The arrays in what a node holds, which may be one, or tuples of whatever an op needs."""
    if isinstance(held, tuple | list):
        for part in held:
            yield from _arrays(part)
    elif hasattr(held, "dtype") and hasattr(held, "shape"):
        yield held


def _is_whole(array: Any) -> bool:
    """Whether it is a mask or holds indices, in any library's words for a dtype."""
    name = str(array.dtype)
    return "int" in name or "bool" in name
