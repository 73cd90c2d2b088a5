"""The log explained: what Burn documents for its levels but never prints, and more.

Every line starts with `# `, so that it can be told from Burn's. At basic: graph size and strategy,
and a summary. At medium and full: each node, whether it is saved or recomputed, and who needs it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.events import (
    BackwardStarted,
    BroughtBack,
    Event,
    Level,
    NodeCreated,
    Recomputed,
    RegionClosed,
    Retrieved,
    StepStarted,
    ValueNamed,
)
from ckptcli.report.log import burn_line

PREFIX = "# "


def explained_log(
    events: Sequence[Event],
    strategy: str,
    level: Level,
    follows_marks: bool,
    reasons: Sequence[str] = (),
) -> Iterator[str]:
    """The log lines of a recorded pass at `level`, with the explanation around them.

    `follows_marks` is whether the strategy recomputes what an op marks as memory bound; `reasons`
    are its own, why it decided as it did for this program.
    """
    created = [event for event in events if isinstance(event, NodeCreated)]
    started = next((event for event in events if isinstance(event, BackwardStarted)), None)
    yield PREFIX + _graph_size(created, started, strategy)
    yield from (PREFIX + line for line in reasons)
    if level >= Level.MEDIUM:
        yield from (PREFIX + line for line in _regions(events))
        yield from (PREFIX + line for line in _nodes(created, events, started, follows_marks))
    for event in events:
        line = burn_line(event, level)
        if line is not None:
            yield line
    yield from (PREFIX + line for line in _inside_steps(events))
    yield PREFIX + _summary(events)


def _graph_size(
    created: Sequence[NodeCreated], started: BackwardStarted | None, strategy: str
) -> str:
    leaves = sum(event.op is None for event in created)
    steps = 0 if started is None else started.n_steps
    return (
        f"graph: {units.count(len(created), 'node')}, {leaves} of them "
        f"{'a leaf' if leaves == 1 else 'leaves'}; "
        f"{units.count(steps, 'backward step')}; "
        f"strategy {strategy}"
    )


def _regions(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, RegionClosed):
            inside = "inside another" if event.depth > 1 else units.count(len(event.nodes), "node")
            saved = ", ".join(map(str, event.saved)) or "none"
            yield f"region {event.name}: {inside}; values that its policy saves: {saved}"


def _nodes(
    created: Sequence[NodeCreated],
    events: Sequence[Event],
    started: BackwardStarted | None,
    follows_marks: bool,
) -> Iterator[str]:
    names = {event.node_id: event.name for event in events if isinstance(event, ValueNamed)}
    dropped = Counter(() if started is None else started.dropped_backups)
    ops = {event.node_id: event.op or "leaf" for event in created}
    needed_by = _needed_by(created, events, ops)
    again = {event.node_id for event in events if isinstance(event, Recomputed)}
    back = {event.node_id for event in events if isinstance(event, BroughtBack)}
    for event in created:
        parents = ", ".join(map(str, event.parents))
        node_id = event.node_id
        fate = _fate(len(needed_by[node_id]), node_id in again, node_id in back)
        text = (
            f"node {event.node_id} {ops[event.node_id]}({parents}) {list(event.shape)} "
            f"{event.dtype} {units.size(event.value_bytes)}: {fate}"
        )
        if event.node_id in names:
            text += f", named {names[event.node_id]}"
        if needed_by[event.node_id]:
            text += f", needed by {', '.join(needed_by[event.node_id])}"
        if dropped[event.node_id]:
            text += f", {units.count(dropped[event.node_id], 'backup')} dropped unused"
        is_held = event.memory_bound and not event.recompute
        if follows_marks and is_held and event.untracked_parents:
            constants = ", ".join(map(str, event.untracked_parents))
            text += f"; memory bound, but held where needed: parent {constants} is a constant"
        yield text


def _fate(uses: int, again: bool, back: bool) -> str:
    """What happened, not what was planned: a region's outputs are held all the same."""
    if not uses and not again:
        return "not needed"
    word = "recomputed" if again else "saved on the host" if back else "saved"
    return f"{word}, {units.count(uses, 'use')}"


def _needed_by(
    created: Sequence[NodeCreated], events: Sequence[Event], ops: dict[int, str]
) -> dict[int, list[str]]:
    """Node id -> who used its value: backward steps, and nodes computed again from it."""
    parents = {event.node_id: event.parents for event in created}
    needed: dict[int, list[str]] = defaultdict(list)
    for event in events:
        if isinstance(event, Retrieved):
            user = f"{event.needed_by} ({ops[event.needed_by]})"
            needed[event.node_id].append(user)
        elif isinstance(event, Recomputed):
            for parent in parents[event.node_id]:
                needed[parent].append(f"the recomputation of {event.node_id}")
    return needed


def _summary(events: Sequence[Event]) -> str:
    retrieved = [event for event in events if isinstance(event, Retrieved)]
    longer = sum(event.n_nodes > 1 for event in retrieved)
    by_op = Counter(event.op for event in events if isinstance(event, Recomputed))
    return (
        f"summary: {units.count(len(retrieved), 'retrieval')}, {longer} of more than one node; "
        f"{units.count(sum(by_op.values()), 'node')} recomputed{_in_brackets(by_op)}"
    )


def _inside_steps(events: Sequence[Event]) -> Iterator[str]:
    """What ops evaluate inside their own backward, under every strategy; no node of the graph."""
    by_op = Counter(
        event.op for event in events if isinstance(event, StepStarted) and event.evaluates_again
    )
    if by_op:
        yield (
            f"not counted: {units.count(sum(by_op.values()), 'evaluation')} of an op inside its "
            f"own backward step{_in_brackets(by_op)}"
        )


def _in_brackets(by_op: Counter[str]) -> str:
    named = ", ".join(f"{count} {op}" for op, count in sorted(by_op.items()))
    return f" ({named})" if named else ""
