"""The least that any plan of a dag takes, whatever its order: a bound for each action.

When a node is computed for the first time, its operands and its result are resident. So is more: of
what cannot be computed twice, each value that is done and that something not yet done needs, and
each value that is kept. What is done then is not known, but that it has all that leads to the node
and nothing that the node leads to; the least over all such sets is a cut, found by max-flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.planning.dag_view import DagView
from ckptcli.planning.max_flow import Network
from ckptcli.planning.orders import freeing
from ckptcli.planning.planners.base import Deadline, Floor

MOST_NODES_OF_A_CUT = 5_000
MOST_WORK = 40_000
"""Of nodes times cuts: under a second."""

SOURCE, SINK = 0, 1


def floor_of(view: DagView, deadline: Deadline) -> Floor:
    """The highest bound of any action that there is time for; those that promise most first."""
    best = max(
        (_operands(view, v) for v in view.needed), key=lambda floor: floor.bytes, default=Floor(0)
    )
    if len(view.needed) > MOST_NODES_OF_A_CUT:
        return best
    estimates = _estimates(view)
    cuts = 1 + MOST_WORK // len(estimates)
    for v in sorted(view.needed, key=lambda v: (-estimates[v], v))[:cuts]:
        if estimates[v] <= best.bytes or deadline.passed:
            break
        floor = least_at(view, v)
        if floor.bytes > best.bytes:
            best = floor
    return best


def _operands(view: DagView, v: int) -> Floor:
    """What is needed of the node's own values alone."""
    values = {*view.parents[v], v}
    size = sum(view.size[u] for u in values)
    return Floor(
        size + view.workspace[v], f"compute {view.name(v)}", view.names(values), view.workspace[v]
    )


def _estimates(view: DagView) -> list[int]:
    """What each action takes in one order: at least its bound."""
    order = freeing(view)
    stays = [view.is_once[v] or v in view.problem.keep for v in range(len(view.size))]
    uses = [sum(stays[c] for c in children) for children in view.children]
    found = [0] * len(stays)
    live = 0
    for v in order:
        own = sum(view.size[p] for p in view.parents[v] if not stays[p])
        held = sum(view.size[p] for p in view.parents[v] if stays[p] and not uses[p])
        found[v] = live + own + held + view.size[v] + view.workspace[v]
        if not stays[v]:
            continue
        if uses[v] or v in view.problem.keep:
            live += view.size[v]
        for p in view.parents[v]:
            uses[p] -= 1
            if stays[p] and not uses[p] and p not in view.problem.keep:
                live -= view.size[p]
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    network: Network
    done: Sequence[int]
    used_up: Sequence[int]


def least_at(view: DagView, v: int) -> Floor:
    """What computing a node for the first time takes in any order, and the values of that."""
    own = {*view.parents[v], v}
    cut = _network(view, v, own)
    cut.network.saturate(SOURCE, SINK)
    is_done = cut.network.source_side(SINK)
    held = set(own)
    for u in view.needed:
        is_kept = u in view.problem.keep
        if is_done[cut.done[u]] and (is_kept or (cut.used_up[u] and not is_done[cut.used_up[u]])):
            held.add(u)
    size = sum(view.size[u] for u in held) + view.workspace[v]
    return Floor(size, f"compute {view.name(v)}", view.names(held), view.workspace[v])


def _network(view: DagView, v: int, own: set[int]) -> _Cut:
    """The source's side is what is done; a cut pays for what is done and cannot be let go."""
    network = Network()
    network.vertex(), network.vertex()
    done = [network.vertex() for _ in view.size]
    used_up = [0] * len(done)
    for u in view.needed:
        for parent in view.parents[u]:
            network.arc(done[u], done[parent], None)
        size = 0 if u in own else view.size[u]
        users = [child for child in view.children[u] if view.is_once[child]]
        if u in view.problem.keep:
            network.arc(done[u], SINK, size)
        elif view.is_once[u] and users:
            used_up[u] = network.vertex()
            network.arc(done[u], used_up[u], size)
            for child in users:
                network.arc(used_up[u], done[child], None)
    for parent in view.parents[v]:
        network.arc(SOURCE, done[parent], None)
    network.arc(done[v], SINK, None)
    return _Cut(network, done, used_up)
