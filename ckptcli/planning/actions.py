"""The actions of a schedule: a verb and what it is done to, as a plan file has them.

- dag: `compute` a node, `free` a node, by name;
- chain: `forward` i, `forward_all` i, `backward` i, `free` of `a3` or `abar3`;
- steps: `advance` from i to j; `store`, `restore` and `free` state i, with `disk` at the end where
  that is meant; `tape` step i, `reverse` step i, `reverse_tape` of step i;
- knapsack: `keep` item i;
- program: `hold` a node, `compute` and `free` one, `retrieve` for a step; `to_host` of a value when
  it is made, `from_host` of it in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Action = tuple[str | int, ...]
"""A verb and its operands: ("compute", "m1"), ("advance", 0, 5)."""

COMPUTE, FREE, KEEP = "compute", "free", "keep"
FORWARD, FORWARD_ALL, BACKWARD = "forward", "forward_all", "backward"
ADVANCE, STORE, RESTORE = "advance", "store", "restore"
TAPE, REVERSE, REVERSE_TAPE = "tape", "reverse", "reverse_tape"
DISK = "disk"
HOLD, RETRIEVE = "hold", "retrieve"
TO_HOST, FROM_HOST = "to_host", "from_host"


def node_actions(names: Sequence[str], moves: Sequence[int]) -> Iterator[Action]:
    """The actions of moves on a dag: `v` computes node v, `~v` frees it."""
    for move in moves:
        yield (COMPUTE, names[move]) if move >= 0 else (FREE, names[~move])
