"""The memory pass as it went, op by op: live bytes, storages, nodes, retrievals.

Nothing is kept of an array but its size. A list that grows with the program is cut to what a page
can show; `cut` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ckptcli.measure.fields import Bytes, Count, Positive, Seconds, Words

PassPhase = Annotated[str, Words(("forward", "recompute", "backward", "step"))]
Fate = Annotated[str, Words(("parameter", "input", "saved", "recomputed", "dropped", "output"))]
Shape = Sequence[Count]
NodeIds = Sequence[Count]


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """One op of the memory pass, of a PyTorch module one storage that it made.

    Attributes:
        phase: Part of the pass.
        node: Node id; null for what belongs to none.
        op: Op.
        high_bytes: The most that was live while it ran, bytes.
        end_bytes: Live after it, bytes.
        start_s: Start, seconds from the start of the memory pass, which is slower than a timed one.
        end_s: End, seconds from the start of the memory pass.
        module: Of a PyTorch module, the part that ran, or whose backward did, by its path; empty
            elsewhere.
    """

    phase: PassPhase
    node: Count | None
    op: str | None
    high_bytes: Bytes
    end_bytes: Bytes
    start_s: Seconds
    end_s: Seconds
    module: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """One storage from its first op to its last.

    Attributes:
        node: Node id; null for what belongs to none.
        op: Op of the node; null for a leaf.
        why: What it is: parameter, input, value, recomputed, gradient, gradient of a parameter,
            temporary.
        shape: Sizes of the dimensions, outermost first.
        bytes: Size, bytes.
        born: Index in `timeline` of the op during which it was allocated.
        died: Index in `timeline` of the op during which it was freed; null if it outlives the pass.
    """

    node: Count | None
    op: str | None
    why: str
    shape: Shape
    bytes: Bytes
    born: Count
    died: Count | None


@dataclass(frozen=True, slots=True)
class NodeFate:
    """What became of one node.

    Attributes:
        node: Node id.
        op: Op; null for a leaf.
        parents: Ids of the operands, in order.
        shape: Sizes of the dimensions, outermost first.
        bytes: Size of the value, bytes.
        fate: What became of the value.
        uses: How often backward needs the value.
        held_for_constants: The constants among the operands that made it held instead of
            recomputed.
        dtype: Element type, float32.
        source: The line of the program that made it, FILE:LINE; empty if not known.
        name: The name that the program gave the value; empty for none.
    """

    node: Count
    op: str | None
    parents: NodeIds
    shape: Shape
    bytes: Bytes
    fate: Fate
    uses: Count
    held_for_constants: NodeIds
    dtype: str = ""
    source: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One request of a backward step for a value: one line of Burn's log.

    Attributes:
        node: Node id of the value.
        needed_by: Node id of the step that asks.
        visited: The nodes on the way to it, held ones and itself included, in order.
    """

    node: Count
    needed_by: Count
    visited: NodeIds


@dataclass(frozen=True, slots=True)
class Trace:
    """The memory pass as it went; each list has at most 2000 entries.

    Attributes:
        timeline: The ops in order; of a longer pass, of neighbours the one that is highest.
        lives: The storages by their birth; of more, the largest.
        nodes: The nodes by their ids; of more, the first.
        retrievals: The retrievals in order; of more, the first.
        cut: Whether a list was too long to keep whole.
        ops_per_point: How many ops a point of the timeline stands for; 1 unless it was cut.
    """

    timeline: Sequence[TimelinePoint]
    lives: Sequence[Life]
    nodes: Sequence[NodeFate]
    retrievals: Sequence[Retrieval]
    cut: bool
    ops_per_point: Positive = 1
