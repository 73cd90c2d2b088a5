"""The TRG in JAX with one `lax.scan` over the steps whose tensors have one shape.

The first steps, which make the tensor larger, run one by one. Regions of the same size and policy
in a row are turns of one loop, the steps of a region those of another inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.peers.base import program
from ckptcli.peers.jax_loops import Body, check_has_loop, in_rows, repeated
from ckptcli.peers.jax_regions import checkpointed
from ckptcli.peers.jax_trg_program import JaxTrg
from ckptcli.peers.trg_formula import Steps, Svd, trg_steps
from ckptcli.workloads.trg import FIRST_SIZE


@program("jax-scan", "trg")
class ScannedTrg(JaxTrg):
    """beta, shape (1,), and lnZ/N as a function of it."""

    def own_gradients(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Of beta."""
        return gradients

    def _grouped(
        self, svd: Svd, ranks: Sequence[int], regions: Sequence[LayerRegion]
    ) -> list[Steps]:
        """The steps of each row of regions that are alike."""
        grows = [before != rank for before, rank in zip([FIRST_SIZE, *ranks], ranks)]
        parts = list(_parts(ranks, grows, regions))
        kinds = [
            None if any(growing) else (len(growing), part_ranks[0], region.policy)
            for region, part_ranks, growing in parts
        ]
        groups, longest = [], []
        for first, turns in in_rows(kinds):
            region, part_ranks, growing = parts[first]
            rows = in_rows([None if g else rank for g, rank in zip(growing, part_ranks)])
            body = checkpointed(_steps(svd, part_ranks, rows), region.policy)
            groups.append(_as_steps(repeated(body, turns)))
            longest += [turns, *(count for _, count in rows)]
        check_has_loop(longest)
        return groups


def _parts(
    ranks: Sequence[int], grows: Sequence[bool], regions: Sequence[LayerRegion]
) -> Iterator[tuple[LayerRegion, Sequence[int], Sequence[bool]]]:
    """Of each region its steps: the rank that each keeps, and whether that is a new size."""
    first = 0
    for region in regions:
        last = first + region.size
        yield region, ranks[first:last], grows[first:last]
        first = last


def _steps(svd: Svd, ranks: Sequence[int], rows: Sequence[tuple[int, int]]) -> Body:
    """Steps in a row, loops where they are alike; the logarithms come out as one array."""
    import jax.numpy as jnp

    bodies = [repeated(_step(svd, ranks[first]), count) for first, count in rows]

    def body(tensor: Any, _: Any) -> tuple[Any, Any]:
        logarithms = []
        for row in bodies:
            tensor, found = row(tensor, None)
            logarithms.append(jnp.reshape(found, -1))
        return tensor, jnp.concatenate(logarithms)

    return body


def _step(svd: Svd, rank: int) -> Body:
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    def body(tensor: Any, _: Any) -> tuple[Any, Any]:
        tensor, (logarithm,) = trg_steps(jnp, svd, tensor, [rank], checkpoint_name)
        return tensor, logarithm

    return body


def _as_steps(loop: Body) -> Steps:
    def steps(tensor: Any) -> tuple[Any, list[Any]]:
        tensor, logarithms = loop(tensor, None)
        return tensor, list(logarithms.reshape(-1))

    return steps
