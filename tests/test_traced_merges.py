"""In which order a copied history has its entries."""

from __future__ import annotations

from ckptcli.traced import Tensor, Tracer
from tests.traced_kit import checkpointed


def leaves(tensor: Tensor) -> list[object]:
    """The leaves of the history, newest first."""
    return [entry.leaf for entry in tensor.history.entries()]


def test_the_left_list_comes_first_in_its_order() -> None:
    tracer = Tracer(merge="copy")
    left, right = (tracer.tensor([value]) for value in (2.0, 3.0))
    for _ in range(3):
        left = checkpointed(left * 2.0)
        right = checkpointed(right * 2.0)
    before = leaves(left), leaves(right)
    assert before[0][0] is left.node
    assert leaves(left * right) == [*before[0], *before[1]]
    assert leaves(right * left) == [*before[1], *before[0]]
    assert (leaves(left), leaves(right)) == before
