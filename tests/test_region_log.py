"""The log of recomputed regions, whole, each line with its reason.

A retrieval names the value and how many nodes are visited for it; each visit is a line of its own.
The first value asked of a region visits every node that the region computes again, in the order of
the forward pass. Any later one is there already, so that it visits itself, as a held one does.

Two layers of the silu network: w0 is node 0, w1 is 1 and x is 2; m, s and h of the first layer are
3, 4 and 5, of the second 6, 7 and 8; the sum is 9. A product asks for its factors, the left one
first; a sigmoid for its operand; the sum for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ckptcli.cli.main import run_command

Retrieval = tuple[int, tuple[int, ...], str]
"""A value, the nodes that are visited for it, and why these."""

A_REGION_A_LAYER: list[Retrieval] = [
    (6, (6, 7), "h = m s asks for m: the second region makes m from its inputs, and s for later"),
    (7, (7,), "h = m s asks for s, which the region has made"),
    (6, (6,), "s asks for m, its last use"),
    (5, (5,), "m = h w1 asks for h, the region's input, which is held"),
    (1, (1,), "m = h w1 asks for w1, a parameter"),
    (3, (3, 4), "h of the first layer asks for m: the first region makes m and s; h is held"),
    (4, (4,), "and for s"),
    (3, (3,), "s asks for m"),
    (2, (2,), "m = x w0 asks for x alone: x has no gradient, which w0 would be needed for"),
]
ONE_REGION: list[Retrieval] = [
    (6, (3, 4, 5, 6, 7), "the one region makes all but the last h, which no step asks for"),
    (7, (7,), "made already"),
    (6, (6,), "made already"),
    (5, (5,), "h of the first layer is made too, since no region ends there"),
    (1, (1,), "a parameter"),
    (3, (3,), "made with the others"),
    (4, (4,), "made with the others"),
    (3, (3,), "made with the others"),
    (2, (2,), "the region's input"),
]
EVERYTHING_SAVED: list[Retrieval] = [
    (node, (node,), "held: the region saves it") for node in (6, 7, 6, 5, 1, 3, 4, 3, 2)
]
PRODUCTS_SAVED: list[Retrieval] = [
    (6, (6,), "m is saved"),
    (7, (7,), "s is all that the region makes, from m"),
    (6, (6,), "m is saved"),
    (5, (5,), "the region's input"),
    (1, (1,), "a parameter"),
    (3, (3,), "m is saved"),
    (4, (4,), "s again"),
    (3, (3,), "m is saved"),
    (2, (2,), "the region's input"),
]


def lines(retrievals: Sequence[Retrieval]) -> list[str]:
    """As Burn writes them, at level full."""
    written = []
    for node, visited, _ in retrievals:
        count = f"{len(visited)} node(s) to compute"
        written.append(f"retrieve_node_output NodeId {{ value: {node} }}: {count}")
        written += [f"execute_retro_forward NodeId {{ value: {visit} }}" for visit in visited]
    return written


@pytest.mark.parametrize(
    ("strategy", "retrievals"),
    [
        ("remat", A_REGION_A_LAYER),
        ("remat:every=2", ONE_REGION),
        ("segments:1", ONE_REGION),
        ("remat:policy=dots_saveable", PRODUCTS_SAVED),
        ("remat:policy=everything_saveable", EVERYTHING_SAVED),
    ],
)
def test_the_whole_log(
    strategy: str, retrievals: list[Retrieval], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["log", "--strategy", strategy, "--level", "full", "--layers", "2", "--n", "8"]
    assert run_command(command) == 0
    assert capsys.readouterr().out.splitlines() == lines(retrievals)


def test_at_basic_a_retrieval_is_told_without_its_visits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["log", "--strategy", "remat", "--level", "basic", "--layers", "2", "--n", "8"]
    assert run_command(command) == 0
    told = [line for line in lines(A_REGION_A_LAYER) if line.startswith("retrieve")]
    assert capsys.readouterr().out.splitlines() == told
