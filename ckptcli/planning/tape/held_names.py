"""What of a program's plan a policy by names can say, and what is lost.

A policy saves all values of a name or none, in every layer, and a region is computed again once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckptcli.planning.tape.cost_graph import CostGraph, NameValue
from ckptcli.planning.tape.schedule import Schedule
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class HeldNames:
    """What a plan holds, by name.

    Attributes:
        names: of which it holds every value that backward needs.
        partly: of which it holds some -> how many, of how many.
        unnamed: how many of the values that it holds have no name.
        repeated: how many values it computes again more than once.
        moved: how many it moves to the host.
    """

    names: Sequence[str]
    partly: Mapping[str, tuple[int, int]]
    unnamed: int
    repeated: int
    moved: int = 0

    def lost(self) -> Iterator[str]:
        """What a policy by `names` does not do, in sentences."""
        for name, (held, needed) in self.partly.items():
            yield f"the plan holds {held} of {needed} values `{name}`, a policy all or none"
        if self.unnamed:
            yield f"{count(self.unnamed, 'value')} that the plan holds without a name"
        if self.repeated:
            yield f"{count(self.repeated, 'value')} that the plan computes again more than once"
        if self.moved:
            yield f"{count(self.moved, 'value')} that the plan moves to the host"


def held_names(graph: CostGraph, schedule: Schedule) -> HeldNames:
    """The values that a schedule holds, by the names that the program gives them."""
    name_of = {a.node_id: a.name for a in graph.forward if isinstance(a, NameValue)}
    held = Counter(name_of[node] for node in schedule.held if node in name_of)
    again = Counter(name_of[node] for node in schedule.computed if node in name_of)
    times = Counter(schedule.computations())
    return HeldNames(
        names=sorted(name for name in held if not again[name]),
        partly={
            name: (held[name], held[name] + again[name]) for name in sorted(held) if again[name]
        },
        unnamed=sum(node not in name_of for node in schedule.held),
        repeated=sum(n > 1 for n in times.values()),
        moved=len(schedule.moved),
    )


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What comes closest to a plan in JAX. Peaks are the compiler's, above parameters and input.

    Attributes:
        strategy: what `-s` of `ckpt run --engine jax` takes.
        code: that makes the checkpoints of a function `layer`; "" where there is nothing to make,
            or where several layers are one region.
        residual_bytes, peak_bytes: of it.
        none_residual_bytes, none_peak_bytes: without a checkpoint.
        lost: what of the plan it does not do, in sentences.
    """

    strategy: str
    code: str
    residual_bytes: int
    peak_bytes: int | None
    none_residual_bytes: int
    none_peak_bytes: int | None
    lost: Sequence[str]
