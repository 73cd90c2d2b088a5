"""What PyTorch's backward pass writes in place, but where a dispatch mode watches.

What several ops were given has a gradient from each. The engine adds one to the sum so far, in that
one's storage where nothing else refers to it, but never under a dispatch mode: there the sum is a
new storage. So do the formulas of indexing, of `max` and of `topk`, with the zeros that they write
into. A ledger that knows such an op tells of the pass as it is without the ledger.

Invariant: nothing is changed, and where it is not sure that PyTorch writes in place the answer is
no.
Source: `can_accumulate_inplace` in `torch/csrc/autograd/input_buffer.cpp`; `index_backward` and
`value_selecting_reduction_backward` in `torch/csrc/autograd/FunctionsManual.cpp`;
`dispatch_mode_enabled` in `ATen/TensorSubclassLikeUtils.h`; `evaluate_function` in
`torch/csrc/autograd/engine.cpp`, which lets a step's saved tensors go before it adds what the step
gave.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ckptcli.peers.torch_graph import saved_in
from ckptcli.peers.torch_lines import is_between
from ckptcli.peers.torch_storages import storage_key

_ADD = torch.ops.aten.add.Tensor
_WRITTEN_BY_FORMULAS = {torch.ops.aten.index_put.default, torch.ops.aten.scatter.src}
_WATCHED = {_ADD, *_WRITTEN_BY_FORMULAS}
_NO_PASS = -1
_KEEPS_GRAPH = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)
"""Whether the pass that runs keeps its graph; PyTorch before 2.5 does not tell."""
_ENGINE = str(Path(torch.autograd.graph.__file__))
"""From where Python calls the engine."""


class InPlaceSums:
    """Tells of an op what PyTorch writes its result into: `InPlaceSums()(func, args, kwargs)`."""

    def __init__(self) -> None:
        self._owned_once = _references_of_one_owner()

    def __call__(self, func: Any, args: Sequence[Any], kwargs: Any) -> int | None:
        """Key of the storage where nothing watches; None where the op makes one of its own."""
        if func not in _WATCHED or kwargs or torch.is_grad_enabled() or not _is_of_engine():
            return None
        into, is_sum = args[0], func is _ADD
        may_be = (
            into.layout is torch.strided
            and _has_run(torch._C._current_autograd_node()) is is_sum
            and self._is_owned_once(into, is_sum)
            and _fills_its_span(into)
        )
        return storage_key(into.untyped_storage()) if may_be else None

    def _is_owned_once(self, tensor: torch.Tensor, by_a_buffer: bool) -> bool:
        """Whether nothing else has the storage; a formula of PyTorch may name the tensor twice."""
        to_tensor, to_storage = _references(tensor)
        owner, storage = self._owned_once
        return to_storage == storage and (to_tensor == owner or not by_a_buffer)


class _Seen(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not checked
    """Sees how many refer to a gradient that one buffer of the engine owns, inside of a mode."""

    def __init__(self) -> None:
        super().__init__()
        self.references = (0, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _ADD and not torch.is_grad_enabled():
            self.references = _references(args[0])
        return func(*args, **(kwargs or {}))


def _references_of_one_owner() -> tuple[int, int]:
    """Versions of PyTorch differ in what a mode adds to them, so that one sum is looked at."""
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        middle = x.sin()
        loss = (middle.sin() + middle.cos()).sum()
        with _Seen() as seen:
            torch.autograd.grad(loss, x)
    references: tuple[int, int] = seen.references
    return references


def _references(tensor: torch.Tensor) -> tuple[int, int]:
    """How many there are to the tensor, and to its storage."""
    key = storage_key(tensor.untyped_storage())
    return tensor._use_count(), torch._C._storage_Use_Count(key)


def _fills_its_span(tensor: torch.Tensor) -> bool:
    """Whether its elements lie one beside the other, in whatever order of dimensions."""
    span = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape)):
        if length > 1 and stride != span:
            return False
        span *= length
    return True


def _is_of_engine() -> bool:
    """Whether the engine itself runs the op, and no function or hook in Python."""
    if torch._C._current_graph_task_id() == _NO_PASS:
        return False
    frame = sys._getframe(1)
    while frame is not None and is_between(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is None or frame.f_code.co_filename == _ENGINE  # None: a thread of a device


def _has_run(step: Any) -> bool:
    """Whether the step has given its gradients, so that the op is none of its own formula. Of a
    graph that is kept nobody can tell.
    """
    if step is None or _KEEPS_GRAPH():
        return False
    return all(saved.data is None for saved in saved_in(step))
