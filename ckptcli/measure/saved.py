"""What is held after the forward pass, from the trace of one memory pass.

Source: the wishes of users of JAX and PyTorch for a list with bytes, producer and consumers
(jax 12792 and 20285, pytorch 91692).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.measure.saved_list import SavedWords
from ckptcli.measure.trace import Life, NodeFate, Trace

SAVED = "saved"

SUMS = ("op", "line", "name")
"""By what sums are taken."""


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

    @property
    def not_held_as(self) -> str:
        """Each counts."""
        return ""

    def words(self) -> SavedWords:
        """In the words of the list."""
        return SavedWords(
            node=str(self.node),
            op=self.op or "",
            name=self.name,
            made_at=self.source,
            freed_after=self.freed_at or "never",
            why=self.why,
        )

    def keys(self, depth: int | None) -> Mapping[str, str]:
        """Op, line and name."""
        del depth
        name = {"name": self.name} if self.name else {}
        return {"op": self.op or "", "line": self.source, **name}


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
