"""What is held part by part, beside what reverse sweeps written by hand keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcli.measure.saved import SavedTensor


@dataclass(frozen=True, slots=True)
class PartBytes:
    """A part of a program: bytes held here, and kept by sweeps written by hand."""

    part: str
    held_bytes: int
    residual_bytes: int
    replay_bytes: int


def beside_by_hand(
    saved: Sequence[SavedTensor],
    parts: Mapping[str, tuple[int, int]],
    part_of: Mapping[str, str],
    others: str,
) -> list[PartBytes]:
    """Every byte of `saved` in its part, beside what sweeps written by hand keep of it.

    `parts` has the bytes of both sweeps, `part_of` the part of each name, `others` that of what has
    no name.
    """
    held: Counter[str] = Counter()
    for tensor in saved:
        held[part_of.get(tensor.name, others)] += tensor.bytes
    return [PartBytes(part, held[part], *by_hand) for part, by_hand in parts.items()]


def total_of(parts: Sequence[PartBytes]) -> PartBytes:
    """The sums over all parts."""
    return PartBytes(
        "total",
        sum(part.held_bytes for part in parts),
        sum(part.residual_bytes for part in parts),
        sum(part.replay_bytes for part in parts),
    )
