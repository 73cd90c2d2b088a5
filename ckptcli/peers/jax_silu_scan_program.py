"""The silu network in JAX as a scan over its layers, whose weights are stacked.

Regions of the same size and policy in a row are turns of one loop, the layers of a region those of
another inside it. Weights are stacked before the program, not in it: what is stacked there would
be held for backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.peers.agreement import TOLERANCES
from ckptcli.peers.base import program
from ckptcli.peers.jax_loops import Body, check_has_loop, in_rows, repeated
from ckptcli.peers.jax_regions import checkpointed
from ckptcli.peers.jax_silu_program import recomputed_ops, silu_layers
from ckptcli.workloads.silu import SiluWorkload


@program("jax-scan", "silu")
class ScannedSilu:
    """A stack of weights for each loop, (turns, layers of a region, n, n) without axes of 1."""

    def __init__(self, workload: SiluWorkload, regions: Sequence[LayerRegion]) -> None:
        weights, self.x = workload.arrays
        self.tolerance = TOLERANCES[workload.dtype]
        self._shapes: list[tuple[int, Sequence[int]]] = []
        self._loops: list[Body] = []
        self._layers = workload.layers
        self._first_is_in_a_loop = False
        done, longest = 0, []
        for first, turns in in_rows([(r.size, r.policy) for r in regions]):
            size = regions[first].size
            shape = [axis for axis in (turns, size) if axis > 1]
            self._shapes.append((turns * size, (*shape, *weights[0].shape)))
            self._loops.append(repeated(_region(size, regions[first]), turns))
            self._first_is_in_a_loop |= done == 0 and bool(shape)
            done += turns * size
            longest.append(turns * size)
        check_has_loop(longest)
        self.parameters = self.stacked(weights)

    def stacked(self, weights: Sequence[Any]) -> list[Any]:
        """The weights of each loop in one array."""
        stacks, done = [], 0
        for count, shape in self._shapes:
            stacks.append(np.reshape(weights[done : done + count], shape))
            done += count
        return stacks

    def loss(self, weights: Sequence[Any], x: Any) -> Any:
        h = x
        for loop, stack in zip(self._loops, weights):
            h, _ = loop(h, stack)
        return h.sum()

    def own_gradients(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Each weight's, (n, n), from those of the stacks."""
        stacks = [np.asarray(stack) for stack in gradients]
        return [g for stack in stacks for g in np.reshape(stack, (-1, *stack.shape[-2:]))]

    def recomputed(self, backward_calls: Counter[str]) -> dict[str, int]:
        """A loop has one body: the first turn forms the input's gradient, which nobody needs."""
        own_products = 2 * self._layers - (not self._first_is_in_a_loop)
        return recomputed_ops(backward_calls, own_products)


def _region(size: int, region: LayerRegion) -> Body:
    return checkpointed(repeated(_layer, size), region.policy)  # type: ignore[no-any-return]


def _layer(h: Any, weight: Any) -> tuple[Any, None]:
    return silu_layers(h, [weight]), None
