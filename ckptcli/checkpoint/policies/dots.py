"""The policies that go by products: all, those without batch dims, and these on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ckptcli.checkpoint.policies.base import (
    OFFLOAD,
    Answer,
    BasePolicy,
    NoCounterpart,
    TorchOps,
    ValueInfo,
)
from ckptcli.checkpoint.policies.registry import register

PRODUCTS = frozenset({"matmul", "linear"})
DOTS = PRODUCTS | {f"conv{t}{d}d" for d in (1, 2, 3) for t in ("", "_transpose")}
"""Ops that JAX's `dots_saveable` counts: products and convolutions."""


@register
@dataclass(frozen=True, slots=True)
class DotsSaveable(BasePolicy):
    """Save outputs of matrix products and convolutions."""

    keyword: ClassVar[str] = "dots_saveable"
    summary: ClassVar[str] = "what matrix products and convolutions return"

    def __call__(self, value: ValueInfo) -> bool:
        return value.op in DOTS

    def in_jax(self, policies: Any) -> Any:
        return policies.dots_saveable

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        return ops.products | ops.batched_products | ops.convolutions


@register
@dataclass(frozen=True, slots=True)
class DotsWithNoBatchDimsSaveable(BasePolicy):
    """Save outputs of matrix products without batch dims; no convolutions."""

    keyword: ClassVar[str] = "dots_with_no_batch_dims_saveable"
    summary: ClassVar[str] = (
        "products whose operands share no leading dim of a size over 1; no convolutions"
    )

    def __call__(self, value: ValueInfo) -> bool:
        return value.op in PRODUCTS and value.batch_dims == 0

    def in_jax(self, policies: Any) -> Any:
        return policies.dots_with_no_batch_dims_saveable

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        return ops.products


@register
@dataclass(frozen=True, slots=True)
class OffloadDotWithNoBatchDims(BasePolicy):
    """Save what `dots_with_no_batch_dims_saveable` does, on the host."""

    keyword: ClassVar[str] = "offload_dot_with_no_batch_dims"
    summary: ClassVar[str] = "what `dots_with_no_batch_dims_saveable` saves, on the host"

    def __call__(self, value: ValueInfo) -> Answer:
        return OFFLOAD if dots_with_no_batch_dims_saveable(value) else False

    @property
    def moves_to_host(self) -> bool:
        return True

    def in_jax(self, policies: Any) -> Any:
        return policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        raise NoCounterpart("PyTorch's selective checkpointing moves nothing to the host")


dots_saveable = DotsSaveable()
dots_with_no_batch_dims_saveable = DotsWithNoBatchDimsSaveable()
offload_dot_with_no_batch_dims = OffloadDotWithNoBatchDims()
