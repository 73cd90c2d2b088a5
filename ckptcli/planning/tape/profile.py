"""What a pass takes beside values that can be computed again, step by step, and the least of it.

Invariant: no schedule of the tape peaks below `TapeProfile.floor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ckptcli.planning.tape.player import Player


@dataclass(frozen=True, slots=True)
class Floor:
    """What no schedule gets below.

    Attributes:
        peak_bytes: above parameters and input.
        step: the step that sets it; None for the forward pass.
        values: the nodes whose values the step needs together.
        beside_bytes: gradients and all else that is live in it.
    """

    peak_bytes: int
    step: int | None
    values: tuple[int, ...]
    beside_bytes: int


class TapeProfile:
    """The program's steps, and what is live beside values when each begins.

    Attributes:
        steps: the nodes whose steps run, in order.
        fixed_bytes: of each step what is live when it begins, values left out.
        items: of each step what it does.
        needed: of each step the nodes of its retrievals.
    """

    def __init__(self, player: Player) -> None:
        self.player = player
        self.model = model = player.model
        self.steps = model.steps
        self.items = [player.steps[step] for step in self.steps]
        self.needed = [model.graph.nodes[step].needed for step in self.steps]
        nodes = model.graph.nodes
        in_hand = {nodes[node].memory_of for node in model.in_hand}
        self._block = [node.memory_of for node in nodes]
        self._size = [
            model.storage_bytes(n.id) if model.can_recompute[n.id] and n.id not in in_hand else 0
            for n in nodes
        ]
        self.forward_bytes, after_forward = self._forward()
        self.fixed_bytes: list[int] = []
        live = after_forward + sum(net for _, net, place in player.before if place is None)
        constants = self._constants()
        for place, items in enumerate(self.items):
            self.fixed_bytes.append(live + constants[place])
            live += sum(net for _, net, released in items if released is None)

    def _forward(self) -> tuple[int, int]:
        """The forward pass if nothing were held: its peak, and what is live at its end."""
        nothing = self.player.play_forward()
        return nothing.forward_bytes, nothing.held_bytes

    def _constants(self) -> list[int]:
        """Of each step, the bytes of leaves and constants of the forward pass that it or a later
        one needs: they cannot be computed again.
        """
        model = self.model
        nodes = model.graph.nodes
        totals: list[int] = []
        known: set[int] = set()
        for needed in reversed(self.needed):
            for node in needed:
                if not model.can_recompute[node]:
                    known.add(nodes[node].memory_of)
            totals.append(sum(model.storage_bytes(memory) for memory in known))
        return totals[::-1]

    def block_of(self, value: int) -> int:
        """The node whose memory the value lies in."""
        return self._block[value]

    def bytes_of(self, values: Iterable[int]) -> int:
        """The memory of the values of these nodes, each block once, but for what the program has in
        hand at the end of its forward pass.
        """
        blocks = {self._block[value] for value in values}
        return sum(self._size[block] for block in blocks)

    def step_peak(self, place: int, resident: frozenset[int], stays: frozenset[int]) -> int:
        """The peak of a step that begins with the values of `resident`, of which `stays` remain."""
        live = peak = self.fixed_bytes[place] + self.bytes_of(resident)
        step, needed = self.steps[place], self.needed[place]
        open_places = set(range(len(needed)))
        for rise, net, released in self.items[place]:
            if released is None:
                peak = max(peak, live + rise)
                live += net
            elif released[0] == step:
                open_places.discard(released[1])
                there = {*stays, *(needed[p] for p in open_places)}
                value = needed[released[1]]
                live -= self.bytes_of({value, *there}) - self.bytes_of(there)
        return peak

    def floor(self) -> Floor:
        """The largest of what each step takes with nothing but its own values."""
        found = Floor(self.forward_bytes, None, (), 0)
        for place, step in enumerate(self.steps):
            values = frozenset(v for v in self.needed[place] if self.model.can_recompute[v])
            peak = self.step_peak(place, values, frozenset())
            if peak > found.peak_bytes:
                beside = peak - self.bytes_of(values)
                found = Floor(peak, step, tuple(dict.fromkeys(self.needed[place])), beside)
        return found
