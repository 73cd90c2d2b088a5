"""`compute_bound_saveable`: what Burn marks bound by arithmetic; the rest is computed again.

It is what `balanced` decides, as a policy: of a region here, and of one in a library that knows no
ops of Burn's. Which of that library's ops are bound by arithmetic is said here in its own names.

Source: Burn 0.22.1, the marks of its ops, `ckpt ops`; names of JAX's primitives, `jax.lax`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ckptcli.checkpoint.policies.base import BasePolicy, TorchOps, ValueInfo
from ckptcli.checkpoint.policies.registry import register

_DECOMPOSITIONS = {"svd", "qr", "eigh", "cholesky", "lu", "triangular_solve"}
_REDUCTIONS = {"argmax", "argmin", *(f"reduce_{of}" for of in ("sum", "prod", "max", "min"))}
_SCANS = {"cumsum", "cumprod", "cummax", "cummin"}
_WINDOWS = {f"reduce_window{of}" for of in ("", "_sum", "_max", "_min")}
_PLACES = {"gather", "scatter", *(f"scatter{of}" for of in ("_add", "_mul", "_max", "_min"))}

IN_JAX = frozenset(
    {
        *("dot_general", "ragged_dot_general", "conv_general_dilated", "fft", "sort", "top_k"),
        *("convert_element_type", "select_n", "concatenate"),
        *_DECOMPOSITIONS,
        *_REDUCTIONS,
        *_SCANS,
        *_WINDOWS,
        *_PLACES,
        *(name.replace("_", "-") for name in _PLACES),
    }
)
"""JAX's primitives that do what an op does which Burn marks bound by arithmetic."""


@register
@dataclass(frozen=True, slots=True)
class ComputeBoundSaveable(BasePolicy):
    """Save what is bound by arithmetic, as `balanced` does where nobody looks at constants."""

    keyword: ClassVar[str] = "compute_bound_saveable"
    summary: ClassVar[str] = (
        "what Burn marks compute bound: products, decompositions, sums: `balanced` as a policy"
    )

    def __call__(self, value: ValueInfo) -> bool:
        return not value.memory_bound

    def in_jax(self, policies: Any) -> Any:
        return _is_compute_bound_in_jax

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        return ops.compute_bound


def _is_compute_bound_in_jax(primitive: Any, *_: Any, **__: Any) -> bool:
    return primitive.name in IN_JAX


compute_bound_saveable = ComputeBoundSaveable()
