"""What a pass shows about regions, policies and names that is not what was meant.

Each lint is one line with the name or number that it is about and the fix. Nothing here is an
error: gradients are right, but memory or time is spent for nothing.

Source: faults that went unnoticed in public (misspelt names, names that save no work, policies
that match nothing, Burn's fallback for constants, one region around everything).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ckptcli.events import (
    NodeCreated,
    Recomputed,
    RegionClosed,
    Retrieved,
    ValueNamed,
    Watcher,
)
from ckptcli.units import count, size


class PassFacts(Watcher):
    """A sink that keeps what lints ask for."""

    def __init__(self) -> None:
        super().__init__(
            {
                NodeCreated: self._take_created,
                ValueNamed: self._take_name,
                RegionClosed: self._take_region,
                Retrieved: self._take_retrieved,
                Recomputed: self._take_recomputed,
            }
        )
        self.created: dict[int, NodeCreated] = {}
        self.names: dict[str, list[int]] = defaultdict(list)
        self.regions: list[RegionClosed] = []
        self.again: Counter[int] = Counter()
        self._users, self._used = array("q"), array("q")

    @property
    def uses(self) -> Iterator[tuple[int, int]]:
        """(user, value): a backward step that asked, or a node computed again from the value."""
        return zip(self._users, self._used)

    def _take_created(self, event: NodeCreated) -> None:
        self.created[event.node_id] = event

    def _take_name(self, event: ValueNamed) -> None:
        self.names[event.name].append(event.node_id)

    def _take_region(self, event: RegionClosed) -> None:
        self.regions.append(event)

    def _take_retrieved(self, event: Retrieved) -> None:
        self._users.append(event.needed_by)
        self._used.append(event.node_id)

    def _take_recomputed(self, event: Recomputed) -> None:
        self.again[event.node_id] += 1
        parents = self.created[event.node_id].parents
        self._users.extend([event.node_id] * len(parents))
        self._used.extend(parents)

    def ops(self, nodes: Iterable[int]) -> str:
        """The ops of nodes with their numbers, `6 matmul, 6 sigmoid`."""
        counts = Counter(str(self.created[node].op) for node in nodes)
        return ", ".join(f"{number} {op}" for op, number in sorted(counts.items()))


def region_lints(facts: PassFacts, follows_marks: bool = False) -> list[str]:
    """The lints of one pass; `follows_marks` is whether the strategy goes by Burn's op marks."""
    saved = {node for region in facts.regions for node in region.saved}
    needed = _needed_inside(facts)
    return [
        *_unmatched_names(facts),
        *_useless_names(facts, saved, needed),
        *_saved_for_nothing(facts, saved, needed),
        *_saved_by_the_inner_alone(facts, saved),
        *_regions_without_effect(facts, saved & needed),
        *_one_region_around_everything(facts),
        *(_held_for_constants(facts) if follows_marks else ()),
    ]


def _needed_inside(facts: PassFacts) -> set[int]:
    """Values that an op of their own outer-most region used in the backward pass."""
    root = {node: i for i, region in enumerate(facts.regions) for node in region.nodes}
    return {value for user, value in facts.uses if value in root and root.get(user) == root[value]}


def _asked_names(facts: PassFacts) -> list[str]:
    return sorted({name for region in facts.regions for name in region.asked_names})


def _unmatched_names(facts: PassFacts) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in sorted(facts.names))
    fix = f"the program names {names}" if names else "name values with `checkpoint_name`"
    for name in _asked_names(facts):
        if name not in facts.names:
            yield f"name `{name}` matches no value: {fix}"


def _useless_names(facts: PassFacts, saved: set[int], needed: set[int]) -> Iterator[str]:
    """Names that a policy asks for and that change nothing, or not what costs time."""
    in_regions = {node for region in facts.regions for node in region.nodes}
    for name in _asked_names(facts):
        values = [node for node in facts.names.get(name, ()) if node in saved]
        if not values:
            continue
        its_values = count(len(values), "value")
        if not needed.intersection(values):
            yield (
                f"name `{name}` allows {its_values} that backward never takes from its region: "
                "it changes nothing, drop the name"
            )
        elif all(not facts.created[node].recompute for node in values):
            yield f"name `{name}` adds nothing: the policy saves its {its_values} already"
        else:
            yield from _cheap_name(facts, name, needed.intersection(values), in_regions)


def _cheap_name(
    facts: PassFacts, name: str, values: set[int], in_regions: set[int]
) -> Iterator[str]:
    """A name on values that are cheap, while the products that lead to them run again."""
    products = [node for node in facts.again if not facts.created[node].memory_bound]
    products = [node for node in products if node in in_regions]
    if products and all(facts.created[node].memory_bound for node in values):
        held_bytes = sum(facts.created[node].value_bytes for node in values)
        yield (
            f"name `{name}` holds {count(len(values), 'value')} ({size(held_bytes)}) and spares "
            f"{facts.ops(values)}, but {facts.ops(products)} run again all the same: name what "
            "they return"
        )


def _saved_for_nothing(facts: PassFacts, saved: set[int], needed: set[int]) -> Iterator[str]:
    """A policy whose allowed values are all never needed."""
    by_name = {node for name in _asked_names(facts) for node in facts.names.get(name, ())}
    allowed = saved - by_name
    if allowed and not allowed & needed and any(facts.again.values()):
        yield (
            f"the policy allows {count(len(allowed), 'value')} ({facts.ops(allowed)}) that "
            "backward never takes from their regions: it changes nothing, allow others"
        )


def _saved_by_the_inner_alone(facts: PassFacts, saved: set[int]) -> Iterator[str]:
    """Values that an inner region saves and a region around it computes again."""
    by_region: dict[str, list[int]] = defaultdict(list)
    for region in facts.regions:
        again = [node for node in region.saved if facts.again[node]]
        if again:
            by_region[region.name] += again
    names = {node: name for name, nodes in facts.names.items() for node in nodes}
    for region_name, nodes in by_region.items():
        called = sorted({f"`{names[node]}`" for node in nodes if node in names})
        yield (
            f"region `{region_name}` saves {count(len(nodes), 'value')}"
            f"{' named ' + ', '.join(called) if called else ''}, but the producer runs again all "
            f"the same ({facts.ops(nodes)}): the region around it does not save them, give it the "
            "same policy"
        )


def _regions_without_effect(facts: PassFacts, useful: set[int]) -> Iterator[str]:
    in_regions = {node for region in facts.regions for node in region.nodes}
    if not in_regions or any(facts.again[node] for node in in_regions):
        return
    regions = count(sum(region.depth == 1 for region in facts.regions), "region")
    if useful:
        yield (
            f"{regions} without effect: the policy saves all that backward needs "
            f"({facts.ops(useful)}), use one that saves less"
        )
    else:
        yield (
            f"{regions} without effect: backward needs no value made inside, "
            "put ops into them whose backward does"
        )


def _one_region_around_everything(facts: PassFacts) -> Iterator[str]:
    if len(facts.regions) != 1 or not facts.again:
        return
    (region,) = facts.regions
    inside = set(region.nodes)
    if all(user in inside for user, _ in facts.uses):
        yield (
            f"region `{region.name}` is around everything: it holds less after forward, but its "
            f"{count(len(facts.again), 'value')} come back at once, so the peak of backward stays: "
            "use several regions, such as `remat:every=K` with a smaller K"
        )


def _held_for_constants(facts: PassFacts) -> Iterator[str]:
    """Burn's fallback: an untracked operand makes a memory-bound op be held."""
    used = {value for _, value in facts.uses}
    held = [
        event
        for event in facts.created.values()
        if event.tracked
        and event.memory_bound
        and not event.recompute
        and event.untracked_parents
        and event.node_id in used
    ]
    if held:
        first = held[0]
        held_bytes = sum(event.value_bytes for event in held)
        yield (
            f"node {first.node_id} ({first.op}) is held although it is memory bound, since its "
            f"operand {first.untracked_parents[0]} is a constant (Burn's fallback; "
            f"{count(len(held), 'such node')}, {size(held_bytes)}): use a scalar or "
            "a tensor that requires a gradient there, or a region"
        )
