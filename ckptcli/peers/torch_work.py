"""What the ops of a PyTorch pass work: what ran again, the operations and the traffic of each part.

Operations are those of PyTorch's own counter for the ops that it knows, products and convolutions.
Of all others, each element of the largest tensor that is read or returned counts as one, and an op
that only moves as none; a step of a recurrent layer is a product with each of its matrices.
Traffic is what an op is given and what it returns, in bytes. A view works nothing.

Source: `torch/utils/flop_counter.py`; an op's schema says what it returns as a view and changes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

_NOTHING = frozenset(
    {"_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
)
"""What makes a tensor and computes none of its elements."""

_MOVES = frozenset(
    {
        "_to_copy",
        "arange",
        "cat",
        "clone",
        "constant_pad_nd",
        "copy_",
        "embedding",
        "fill_",
        "flip",
        "full",
        "full_like",
        "gather",
        "index",
        "index_put_",
        "index_select",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
        "pixel_shuffle",
        "repeat",
        "repeat_interleave",
        "roll",
        "scatter",
        "stack",
        "zero_",
        "zeros",
        "zeros_like",
    }
)
"""What computes no new number."""

_RECURRENT = frozenset({"mkldnn_rnn_layer", "_cudnn_rnn", "miopen_rnn"})
_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
"""The kernel for the CPU of an op that the counter knows by the names of its GPU kernels."""


class Work:
    """The sums so far, by the part of the pass.

    Attributes:
        flops: floating-point operations.
        moved_bytes: read and written, bytes.
        ops: how often each op ran, by (part, its name in `aten`).
    """

    def __init__(self) -> None:
        self.flops: Counter[str] = Counter()
        self.moved_bytes: Counter[str] = Counter()
        self.ops: Counter[tuple[str, str]] = Counter()

    def add(self, part: str, op: Any, given: Any, result: Any) -> None:
        """Count one call of an op, with all that it was given and what it returned."""
        if not _works(op):
            return
        read, written = _tensors(given), _tensors(result)
        if not written and not op._schema.is_mutable:  # a number, or a mark for a profiler
            return
        self.ops[part, op.overloadpacket.__name__] += 1
        self.moved_bytes[part] += sum(map(_size_bytes, (*read, *written)))
        self.flops[part] += _flops(op, given, read, written, result)

    def by_op(self, part: str) -> dict[str, int]:
        """How often each op ran in a part, by its name."""
        return dict(sorted((op, n) for (where, op), n in self.ops.items() if where == part))


@cache
def _works(op: Any) -> bool:
    """Whether an op computes: it returns something that is no view, or changes what it is given."""
    schema = op._schema
    returns_new = any(each.alias_info is None for each in schema.returns)
    return bool(returns_new or schema.is_mutable) and op.overloadpacket.__name__ not in _NOTHING


def _flops(op: Any, given: Any, read: Any, written: Any, result: Any) -> int:
    arguments, named = given
    name = op.overloadpacket.__name__
    counter = flop_registry.get(op.overloadpacket)
    if counter is not None:
        return int(counter(*arguments, **named, out_val=result))
    if name == _ATTENTION:
        return int(sdpa_flop_count(*(each.shape for each in arguments[:3])))
    if name in _RECURRENT:
        return _recurrent_flops(arguments[0], _tensors(arguments[1:5]))
    if name in _MOVES:
        return 0
    return max((each.numel() for each in (*read, *written)), default=0)


def _recurrent_flops(sequence: torch.Tensor, weights: Sequence[torch.Tensor]) -> int:
    """Every step of every sequence is multiplied by each of the layer's matrices."""
    steps = math.prod(sequence.shape[:-1])
    return int(2 * steps * sum(each.numel() for each in weights if each.dim() == 2))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _size_bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())
