"""What a reverse sweep of the TRG written by hand keeps, set beside what the engine holds.

Of each step the sweep keeps the normalised tensor, both decompositions, the four halves and the
norm, and forms the two joints again; with replay it keeps the tensors T_n alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.workloads.base import ByHand

NAMES = {
    "t": "T_n, or T_n / norm",
    "x": "T_n, or T_n / norm",
    "svd": "U, s and V",
    "half": "halves",
    "joint": "joints of two halves",
}
"""The names that the program gives its values, and to which part they belong."""

OTHERS = "norms, and what makes T_0"


def kept_by_hand(ranks: Sequence[int], item_bytes: int) -> ByHand:
    """Bytes by part, for steps that keep `ranks`, with elements of `item_bytes`."""
    sizes = [2, *ranks][: len(ranks)]
    tensors = sum(size**4 for size in sizes)
    factors = sum(2 * (2 * size**2 + 1) * size**2 for size in sizes)
    halves = sum(4 * size**2 * rank for size, rank in zip(sizes, ranks))
    elements = {
        NAMES["t"]: (tensors, tensors),
        NAMES["svd"]: (factors, 0),
        NAMES["half"]: (halves, 0),
        NAMES["joint"]: (0, 0),
        OTHERS: (len(sizes), 0),
    }
    parts = {part: (kept * item_bytes, t * item_bytes) for part, (kept, t) in elements.items()}
    return ByHand(parts, NAMES, OTHERS)
