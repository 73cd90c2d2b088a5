"""The silu network in JAX; the values of each layer are named p, s and h."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.peers.agreement import TOLERANCES
from ckptcli.peers.base import program
from ckptcli.peers.jax_regions import checkpointed
from ckptcli.workloads.silu import SiluWorkload


@program("jax", "silu")
class JaxSilu:
    """Weights, input, and the loss as a function of both."""

    def __init__(self, workload: SiluWorkload, regions: Sequence[LayerRegion]) -> None:
        self.parameters, self.x = workload.arrays
        self.tolerance = TOLERANCES[workload.dtype]
        self._calls = [(r.size, checkpointed(silu_layers, r.policy)) for r in regions]

    def loss(self, weights: Sequence[Any], x: Any) -> Any:
        h, first = x, 0
        for size, call in self._calls:
            h = call(h, weights[first : first + size])
            first += size
        return h.sum()

    def recomputed(self, backward_calls: Counter[str]) -> dict[str, int]:
        own_products = 2 * len(self.parameters) - 1  # the input needs no gradient
        return recomputed_ops(backward_calls, own_products)


def recomputed_ops(backward_calls: Counter[str], own_products: int) -> dict[str, int]:
    """Op -> how often backward computes it again, where the gradient's own products are so many."""
    return {
        "matmul": backward_calls["dot_general"] - own_products,
        "sigmoid": backward_calls["logistic"],
    }


def silu_layers(h: Any, weights: Sequence[Any]) -> Any:
    """Layers one after the other, their values named."""
    import jax
    from jax.ad_checkpoint import checkpoint_name

    for weight in weights:
        p = checkpoint_name(h @ weight, "p")
        s = checkpoint_name(jax.lax.logistic(p), "s")
        h = checkpoint_name(p * s, "h")
    return h
