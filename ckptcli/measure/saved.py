"""What is held after the forward pass, from the trace of one memory pass.

Source: the wishes of users of JAX and PyTorch for a list with bytes, producer and consumers
(jax 12792 and 20285, pytorch 91692).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.measure.record import Life, NodeFate, Trace

SAVED = "saved"


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One storage that lives from the forward to the backward pass.

    Attributes:
        node, op: the node whose value it is; for what an op keeps aside, the op's own.
        bytes: of the whole storage, views included, once.
        source: the line of the program that made it.
        consumers: the backward steps and recomputations that use it, in order.
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


def saved_tensors(trace: Trace) -> list[SavedTensor]:
    """What is held after forward, parameters, input and the root left out; largest first."""
    fates = {node.node: node for node in trace.nodes}
    consumers = _consumers(trace, fates)
    held = [_saved(life, trace, fates, consumers) for life in trace.lives if life.why == SAVED]
    return sorted(held, key=lambda saved: (-saved.bytes, saved.node or 0))


def _saved(
    life: Life, trace: Trace, fates: dict[int, NodeFate], consumers: dict[int, list[str]]
) -> SavedTensor:
    node, op = life.node, life.op
    why = "needed by " + ", ".join(consumers.get(-1 if node is None else node, ()))
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
        tuple(consumers.get(-1 if node is None else node, ())),
        None if freed is None else f"{freed.phase} of {freed.node} ({freed.op})",
        why,
    )


def _consumers(trace: Trace, fates: dict[int, NodeFate]) -> dict[int, list[str]]:
    """Node id -> who uses its value in backward."""
    users: dict[int, list[str]] = defaultdict(list)
    for retrieval in trace.retrievals:
        step = fates.get(retrieval.needed_by)
        users[retrieval.node].append(
            f"{retrieval.needed_by} ({step.op if step is not None else '?'})"
        )
    for node in trace.nodes:
        if node.fate == "recomputed":
            for parent in node.parents:
                users[parent].append(f"the recomputation of {node.node}")
    return dict(users)
