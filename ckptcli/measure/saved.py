"""What is held after the forward pass, from the trace of one memory pass.

Source: the wishes of users of JAX and PyTorch for a list with bytes, producer and consumers
(jax 12792 and 20285, pytorch 91692).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.measure.trace import Life, NodeFate, Trace

SAVED = "saved"


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One storage that lives from the forward to the backward pass.

    Attributes:
        node, op: the node whose value it is; for what an op keeps aside, the op's own.
        name: what the program calls the value, or a view of it; "" for nothing.
        bytes: of the whole storage, views included, once.
        source: the line of the program that made it.
        consumers: the backward steps and recomputations that use it, in order, once a use.
        freed_at: the step after which it is gone; None if it outlives the pass.
        why: what it is held for.
    """

    node: int | None
    op: str | None
    shape: Sequence[int]
    dtype: str
    bytes: int
    source: str
    consumers: Sequence[str]
    freed_at: str | None
    why: str
    name: str = ""


def saved_tensors(trace: Trace) -> list[SavedTensor]:
    """What is held after forward, parameters, input and the root left out; largest first."""
    fates = {node.node: node for node in trace.nodes}
    owners = _owners(trace)
    consumers = _consumers(trace, fates, owners)
    names = {owners[node.node]: node.name for node in trace.nodes if node.name}
    held = [
        _saved(life, trace, fates, consumers, names) for life in trace.lives if life.why == SAVED
    ]
    return sorted(held, key=lambda saved: (-saved.bytes, saved.node or 0))


def _owners(trace: Trace) -> dict[int, int]:
    """Node id -> the node in whose storage its value is: its own, or for a view its operand's."""
    own = {
        life.node for life in trace.lives if life.node is not None and "gradient" not in life.why
    }
    owners: dict[int, int] = {}
    for node in trace.nodes:
        is_view = node.op is not None and node.node not in own and len(node.parents) == 1
        parent = node.parents[0] if is_view else node.node
        owners[node.node] = owners.get(parent, parent)
    return owners


def _saved(
    life: Life,
    trace: Trace,
    fates: dict[int, NodeFate],
    consumers: dict[int, list[str]],
    names: dict[int, str],
) -> SavedTensor:
    node, op = life.node, life.op
    users = consumers.get(-1 if node is None else node, ())
    why = "needed by " + ", ".join(dict.fromkeys(users))
    if node is None:
        maker = trace.timeline[life.born]
        node, op = maker.node, maker.op
        why = f"kept aside by {op} for its own backward step"
    elif node not in consumers:
        why = "a backup that no recomputation turned out to need"
    fate = fates.get(-1 if node is None else node)
    freed = None if life.died is None else trace.timeline[life.died]
    return SavedTensor(
        node,
        op,
        life.shape,
        "" if fate is None else fate.dtype,
        life.bytes,
        "" if fate is None else fate.source,
        tuple(users),
        None if freed is None else f"{freed.phase} of {freed.node} ({freed.op})",
        why,
        names.get(-1 if node is None else node, ""),
    )


def _consumers(
    trace: Trace, fates: dict[int, NodeFate], owners: dict[int, int]
) -> dict[int, list[str]]:
    """Node id -> who uses its value, or a view of it, in backward."""
    users: dict[int, list[str]] = defaultdict(list)
    for retrieval in trace.retrievals:
        step = fates.get(retrieval.needed_by)
        users[owners.get(retrieval.node, retrieval.node)].append(
            f"{retrieval.needed_by} ({step.op if step is not None else '?'})"
        )
    for node in trace.nodes:
        if node.fate == "recomputed":
            for parent in node.parents:
                users[owners.get(parent, parent)].append(f"the recomputation of {node.node}")
    return dict(users)


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
