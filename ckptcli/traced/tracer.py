"""Where traced tensors come from: one backend, one merge rule, one counter of keys."""

from __future__ import annotations

from typing import Any

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.traced.history import MergeRule, merge_rule
from ckptcli.traced.node import Leaf
from ckptcli.traced.program import Compiler
from ckptcli.traced.tensor import Tensor


class Tracer:
    """Makes leaves; tensors of one tracer combine.

    Attributes:
        backend: whose arrays the values are.
        rule: what becomes of the histories of checkpoints, a name of
            `history.RULES`.
        compiler: what `evaluate` and `checkpoint` use where none is given.
    """

    def __init__(self, backend: Backend | None = None, merge: str = "shared") -> None:
        self.backend = open_backend("numpy") if backend is None else backend
        self.rule: MergeRule = merge_rule(merge)
        self.compiler = Compiler(self.backend)
        self._keys = 0

    def input(self, shape: tuple[int, ...], dtype: str = "float64") -> Tensor:
        """A placeholder; its data is bound when a graph is evaluated.

        Raises:
            DtypeError: a dtype that the backend does not have.
        """
        leaf = Leaf(self.next_key(), None, tuple(shape) or (1,), self.backend.checked_dtype(dtype))
        return Tensor(leaf, None, self)

    def tensor(self, data: Any, dtype: str = "float64") -> Tensor:
        """A leaf with a copy of `data`.

        Raises:
            DtypeError: a dtype that the backend does not have.
        """
        array = self.backend.asarray(data, dtype, copy=True)
        return Tensor(Leaf(self.next_key(), array, tuple(array.shape), dtype), None, self)

    def constant(self, data: Any, dtype: str = "float64") -> Tensor:
        """A leaf with a copy of `data` and without a key."""
        array = self.backend.asarray(data, dtype, copy=True)
        return Tensor(Leaf(None, array, tuple(array.shape), dtype), None, self)

    def peek_key(self) -> int:
        """The key that the next leaf gets."""
        return self._keys

    def next_key(self) -> int:
        """A key that no other leaf of this tracer has."""
        self._keys += 1
        return self._keys - 1
