"""Losses, each a mean of shape (1,).

Source: Burn 0.22.1, `burn-tensor/src/tensor/loss`, `burn-nn/src/loss`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcli.autodiff.functions.softmax import log_softmax
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import checked_indices
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError


@operation()
def mse(x: Tensor, target: Tensor) -> Tensor:
    """The mean of the squared differences."""
    difference = x - target
    return (difference * difference).mean()


@operation()
def cross_entropy_with_logits(logits: Tensor, target: Tensor) -> Tensor:
    """The cross entropy of probabilities `target` and softmax(logits) over the last dim."""
    return (log_softmax(logits, -1) * target).sum_dim(-1).mean().neg()


@operation()
def cross_entropy(logits: Tensor, classes: Any, pad_classes: Sequence[int] = ()) -> Tensor:
    """The cross entropy of one class a row; rows of a padding class count as 0."""
    if len(logits.shape) != 2:
        raise ShapeError(f"`cross_entropy` needs logits of rank 2, got {list(logits.shape)}")
    namespace = logits.device.namespace
    rows, count = logits.shape
    array = checked_indices(logits, classes, count, "cross_entropy")
    if math.prod(array.shape) != rows:
        shape = list(array.shape)
        raise ShapeError(f"`cross_entropy` needs a class for each of {rows} row(s), got {shape}")
    indices = namespace.reshape(array, (rows,))
    terms = log_softmax(logits, 1).gather(1, namespace.reshape(indices, (rows, 1)))
    flat = terms.reshape([rows])
    if pad_classes:
        padding = namespace.equal(indices, pad_classes[0])
        for pad_class in pad_classes[1:]:
            padding = namespace.logical_or(padding, namespace.equal(indices, pad_class))
        flat = flat.mask_fill(padding, 0.0)
    return flat.mean().neg()
