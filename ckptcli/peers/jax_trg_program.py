"""The TRG in JAX, a step a layer, with the broadened rule for the gradient of the SVD.

The name `svd` is given inside the rule, to what the rule itself keeps: a name that is put on U, s
and V after it marks copies, and the rule's own are computed again all the same.

Source: `jax.custom_vjp`, `jax.ad_checkpoint.checkpoint_name`; for the rule see
`ckptcli.autodiff.ops.svd`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.peers.base import program
from ckptcli.peers.jax_regions import checkpointed
from ckptcli.peers.trg_formula import Steps, Svd, trg_steps, trg_value
from ckptcli.workloads.trg import TrgWorkload

TOLERANCES = {"float32": (1e-5, 1e-4), "float64": (1e-12, 1e-11)}
"""Up to `SHORT` steps, and beyond: libraries decompose with other roundings, each step anew."""

SHORT = 8

PRODUCTS_OF_A_GRADIENT = 14
"""Of one step: two for each of its three products, four for each of its two decompositions."""


@program("jax", "trg")
class JaxTrg:
    """beta, shape (1,), and lnZ/N as a function of it."""

    x = None

    def __init__(self, workload: TrgWorkload, regions: Sequence[LayerRegion]) -> None:
        self.parameters = list(workload.parameters().values())
        self.tolerance = TOLERANCES[workload.dtype][workload.steps > SHORT]
        self._steps = workload.steps
        self._groups = self._grouped(svd_with_rule(workload.svd_eps), workload.ranks, regions)

    def _grouped(
        self, svd: Svd, ranks: Sequence[int], regions: Sequence[LayerRegion]
    ) -> list[Steps]:
        """The steps of each region, under its checkpoint."""
        groups, first = [], 0
        for region in regions:
            part = ranks[first : first + region.size]
            groups.append(checkpointed(_group(svd, part), region.policy))
            first += region.size
        return groups

    def loss(self, parameters: Sequence[Any], x: Any) -> Any:
        import jax.numpy as jnp
        from jax.ad_checkpoint import checkpoint_name

        return trg_value(jnp, parameters[0][0], self._groups, checkpoint_name)

    def recomputed(self, backward_calls: Counter[str]) -> dict[str, int]:
        own_products = PRODUCTS_OF_A_GRADIENT * self._steps
        return {
            "svd": backward_calls["svd"],
            "matmul": backward_calls["dot_general"] - own_products,
        }


def _group(svd: Svd, ranks: Sequence[int]) -> Steps:
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    return lambda tensor: trg_steps(jnp, svd, tensor, ranks, checkpoint_name)


def svd_with_rule(eps: float) -> Svd:
    """U, s, V of a square matrix; its gradient divides by x as x / (x^2 + eps^2)."""
    import jax
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    def decomposed(matrix: Any) -> Any:
        u, s, vt = jnp.linalg.svd(matrix)
        return tuple(checkpoint_name(factor, "svd") for factor in (u, s, vt.T))

    def forward(matrix: Any) -> Any:
        factors = decomposed(matrix)
        return factors, factors

    def backward(factors: Any, gradients: Any) -> Any:
        u, s, v = factors
        gu, gs, gv = gradients
        j, k = u.T @ gu, v.T @ gv
        below, above = s[None, :] - s[:, None], s[None, :] + s[:, None]
        off = ~np.eye(len(s), dtype=bool)
        f = jnp.where(off, below / (below**2 + eps**2), 0.0)
        g = jnp.where(off, above / (above**2 + eps**2), 0.0)
        middle = ((f + g) * (j - j.T) + (f - g) * (k - k.T)) / 2 + jnp.diag(gs)
        return (u @ middle @ v.T,)

    svd = jax.custom_vjp(decomposed)
    svd.defvjp(forward, backward)
    return svd  # type: ignore[no-any-return]
