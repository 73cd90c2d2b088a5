"""Which kinds of ops a pass with shapes only runs, and whether each returns as many bytes for real.

A kind is an op with the dtypes, ranks and settings that it was called with. It is run twice, with
elements and without, on operands that are made small where they are large, the same size always to
the same.

Invariant: nothing of the module is run for real. Kernels trust their operands, so this runs in a
process of its own (`main`).
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from ckptcli.peers.torch_storages import storage_key, storages

MODULE = __name__

_SMALL_BYTES = 1 << 24
"""Operands that take no more together are not made smaller."""

_LARGE = 16
"""Sizes beyond this are made smaller; below there are strides, kernels, groups, ranks."""

_STEP = 8
_VIEWS = ("_unsafe_view",)
"""Views that their schema does not call so."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of a call: all but its elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size_bytes(self) -> int:
        """Of its elements."""
        return int(torch.Size(self.shape).numel() * self.dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Call:
    """An op by the names under which PyTorch has it, and what it was given."""

    names: tuple[str, str, str]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def op(self) -> str:
        """As in `aten.NAME`."""
        return self.names[1]


class OpKinds(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not checked
    """Inside, the ops that return new storages are noted, one call of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[Any, Call] = {}

    @property
    def calls(self) -> list[Call]:
        """One of each kind, in the order of the pass."""
        return list(self._calls.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op, and note what it was given."""
        kwargs = kwargs or {}
        key = (func, *map(_trait, tree_leaves((args, kwargs))))
        if key not in self._calls and _makes_storages(func):
            names = (func.namespace, func.overloadpacket.__name__, func._overloadname)
            self._calls[key] = Call(names, *tree_map(_without_memory, (args, kwargs)))
        return func(*args, **kwargs)


def _without_memory(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Operand(tuple(value.shape), tuple(value.stride()), value.dtype)
    return value


def _trait(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), value.is_contiguous()
    return "size" if isinstance(value, int) and value > _LARGE else repr(value)


def _makes_storages(func: Any) -> bool:
    returns = func._schema.returns
    is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    has_tensors = any("Tensor" in str(r.type) for r in returns)
    return has_tensors and not is_view and func.overloadpacket.__name__ not in _VIEWS


def main() -> None:
    """Read calls, and print a line for each: its bytes for real and by shapes, or null for both
    where it does not run.
    """
    for call in pickle.load(sys.stdin.buffer):
        try:
            found: Sequence[int | None] = _both_ways(call)
        except Exception:  # whatever an op says of operands that do not fit together
            found = (None, None)
        print(json.dumps(found), flush=True)


def _both_ways(call: Call) -> tuple[int, int]:
    namespace, packet, overload = call.names
    func = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    sizes = _small_sizes(tree_leaves((call.args, dict(call.kwargs))))

    def small(value: Any) -> Any:
        if isinstance(value, Operand):
            return _made(value, sizes)
        return sizes.get(value, value) if type(value) is int else value

    def run() -> int:
        args, kwargs = tree_map(small, (call.args, dict(call.kwargs)))
        return _new_bytes(func(*args, **kwargs), (args, kwargs))

    with torch.no_grad():
        real_bytes = run()
        with FakeTensorMode():
            return real_bytes, run()


def _small_sizes(leaves: Sequence[Any]) -> Mapping[int, int]:
    """Each large size -> a small one, larger ones to larger ones; none where all is small."""
    operands = [leaf for leaf in leaves if isinstance(leaf, Operand)]
    found = {size for operand in operands for size in operand.shape}
    found |= {leaf for leaf in leaves if type(leaf) is int}
    if operands and sum(operand.size_bytes for operand in operands) <= _SMALL_BYTES:
        return {}
    large = sorted(size for size in found if _LARGE < size < 2**62)
    return {size: _LARGE + _STEP * i for i, size in enumerate(large)}


def _made(operand: Operand, sizes: Mapping[int, int]) -> torch.Tensor:
    """A tensor whose dimensions lie in memory in the same order; of integers, zeros."""
    shape = [sizes.get(size, size) for size in operand.shape]
    order = sorted(range(len(shape)), key=lambda i: -operand.stride[i])
    inner = [shape[i] for i in order]
    places = [order.index(i) for i in range(len(shape))]
    if operand.dtype.is_floating_point or operand.dtype.is_complex:
        return torch.rand(inner).to(operand.dtype).permute(places)
    return torch.zeros(inner, dtype=operand.dtype).permute(places)


def _new_bytes(result: Any, given: Any) -> int:
    """Of the storages that were made: what was given may be among what is returned."""
    old = set(_keys(given))
    new = {storage_key(s): s.nbytes() for t in _tensors(result) for s in storages(t)}
    return sum(size for key, size in new.items() if key not in old)


def _keys(values: Any) -> Iterator[int]:
    for tensor in _tensors(values):
        yield from map(storage_key, storages(tensor))


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
