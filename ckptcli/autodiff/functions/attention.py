"""Scaled dot-product attention as Burn's fallback composes it.

The maximum is not detached, as in Burn. Rows that are masked as a whole give 0: their maximum,
minus infinity, is filled with 0, and so is the sum of their weights with 1.

Source: Burn 0.22.1, `burn-backend/src/backend/ops/modules/attention.rs`.
"""

from __future__ import annotations

import math
from typing import Any

from ckptcli.autodiff.numbers import check_mask
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor


@operation()
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    mask: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + bias) @ value over the last two dims.

    Args:
        query: [batch, heads, queries, width].
        key: [batch, heads, keys, width].
        value: [batch, heads, keys, values].
        bias: added to the scores.
        mask: true where a key is not to be seen.
        scale: 1 / sqrt(width) by default.
        softcap: scores are limited to this by a hyperbolic tangent.
        is_causal: a query sees the keys up to its own position, counted from the end.
    """
    namespace = query.device.namespace
    scores = query @ key.transpose()
    scores = scores.mul_scalar(1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if softcap is not None:
        scores = scores.div_scalar(softcap).tanh().mul_scalar(softcap)
    if mask is not None:
        check_mask(mask, "attention")
        hidden = namespace.broadcast_to(namespace.asbool(mask), scores.shape)
        scores = scores.mask_fill(hidden, -math.inf)
    if is_causal:
        scores = scores.mask_fill(_later_keys(scores), -math.inf)
    if bias is not None:
        scores = scores + bias
    largest = scores.max_dim(-1)
    largest = largest.mask_fill(namespace.equal(largest.value, -math.inf), 0.0)
    weights = (scores - largest).exp()
    total = weights.sum_dim(-1)
    total = total.mask_fill(namespace.equal(total.value, 0.0), 1.0)
    return (weights / total) @ value


def _later_keys(scores: Tensor) -> Any:
    """The mask of keys behind a query's position; the last query sees all keys."""
    namespace = scores.device.namespace
    queries, keys = scores.shape[-2:]
    rows = namespace.reshape(namespace.arange(queries), (queries, 1))
    columns = namespace.reshape(namespace.arange(keys), (1, keys))
    hidden = namespace.greater(columns, namespace.add(rows, keys - queries))
    return namespace.broadcast_to(hidden, scores.shape)
