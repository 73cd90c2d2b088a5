"""The binomial schedule on a tape: states between layers in slots, layers computed again from them.

A state is what is made before a layer and needed in it or behind; x_0's slot is what the program
has before its first layer. The last layer is kept from the forward pass, as a reversal reverses
first what it ran last.

Invariant: the layers that are computed again are t(n, slots): the advances but for the forward
pass's, and each other layer once for its own backward steps.

Source: A. Griewank and A. Walther, "Revolve" (2000); `ckptcli.planning.planners.revolve`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.planning.actions import ADVANCE, FREE, REVERSE, STORE
from ckptcli.planning.planners import revolve
from ckptcli.planning.tape.drawing import freed
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.schedule import Schedule

Moves = list[tuple[int, int, list[int]]]
"""Of each retrieval: step, value, and what is computed before it."""


def revolved(model: TapeModel, slots: int) -> Schedule:
    """The schedule of a program with one loop over layers."""
    return _Reversal(model, slots).schedule()


class _Reversal:
    """A backward pass that follows the schedule of equal steps, a layer a step."""

    def __init__(self, model: TapeModel, slots: int) -> None:
        self.model = model
        self.layers = model.graph.loops[0]
        self.slots = min(slots, self.layers)
        self.states = self._states()
        self.base = {value for value in model.values if self._layer(value) is None}
        self.stored: set[int] = set()
        self.present: set[int] = set()
        self.requests = list(reversed(model.requests))
        self.moves: Moves = []
        self.pending: list[int] = []

    def schedule(self) -> Schedule:
        """Stores before the first reversal are made by the forward pass."""
        held: set[int] | None = None
        for verb, *numbers in revolve.schedule(self.layers, self.slots):
            first, last = int(numbers[0]), int(numbers[-1])
            if verb == STORE:
                self.stored.add(first)
            elif verb == FREE:
                self.stored.remove(first)
                self._keep()
            elif verb == ADVANCE and held is not None:
                self._keep(first)
                self._compute(sorted(self.states[last]), self.pending)
                self._keep(last)
            elif verb == REVERSE:
                if held is None:
                    held = self._held()
                    self.present = set(held)
                self._reverse(first - 1)
                self._keep()
        self._reverse(-1)
        return freed(self.model, frozenset(held or ()), _pruned(self.model, self.moves))

    def _layer(self, node: int) -> int | None:
        place = self.model.graph.layers[node]
        return None if place is None else place[1]

    def _layer_or_any(self, step: int) -> int:
        """A step outside of all layers is due whenever it comes."""
        layer = self._layer(step)
        return self.layers if layer is None else layer

    def _states(self) -> list[set[int]]:
        """Before each layer, and behind the last, what layers up to there made for later ones."""
        behind = self.layers
        last_use: dict[int, int] = {}
        for node in self.model.graph.nodes:
            user = self._layer(node.id)
            for value in (*node.parents, *node.needed):
                use = behind if user is None else user
                last_use[value] = max(use, last_use.get(value, 0))
        states: list[set[int]] = [set() for _ in range(self.layers + 1)]
        for value in self.model.values:
            layer = self._layer(value)
            if layer is not None:
                for boundary in range(layer + 1, last_use.get(value, 0) + 1):
                    states[boundary].add(value)
        return states

    def _held(self) -> set[int]:
        """What the forward pass leaves: states in slots, and what the last layer's steps need."""
        first_reversed = (None, self.layers - 1)
        of_last = {v for step, v in self.model.requests if self._layer(step) in first_reversed}
        wanted = self.base.union(of_last, *(self.states[state] for state in self.stored))
        return {value for value in wanted if self.model.can_recompute[value]}

    def _keep(self, live: int | None = None) -> None:
        """All but the states in slots and the one at hand counts as gone."""
        kept = self.stored if live is None else {*self.stored, live}
        self.present = self.base.union(*(self.states[state] for state in kept))

    def _reverse(self, layer: int) -> None:
        """Answer the requests down to those of a layer's steps."""
        while self.requests and self._layer_or_any(self.requests[-1][0]) >= layer:
            step, value = self.requests.pop()
            computed, self.pending = self.pending, []
            self._compute([value], computed)
            self.moves.append((step, value, computed))

    def _compute(self, values: Iterable[int], computed: list[int]) -> None:
        """Note what makes values from those that are present."""
        for value in values:
            stack = [value]
            while stack:
                node = stack[-1]
                if self._is_there(node):
                    stack.pop()
                    continue
                missing = [p for p in self.model.parents[node] if not self._is_there(p)]
                if missing:
                    stack += reversed(missing)
                    continue
                computed.append(stack.pop())
                self.present.add(node)

    def _is_there(self, node: int) -> bool:
        return node in self.present or not self.model.can_recompute[node]


def _pruned(model: TapeModel, moves: Moves) -> Moves:
    """Without what nothing uses until it is computed once more."""
    alive: set[int] = set()
    kept: Moves = []
    for step, value, computed in reversed(moves):
        alive.add(value)
        used = []
        for node in reversed(computed):
            if node in alive:
                alive.remove(node)
                alive.update(model.parents[node])
                used.append(node)
        kept.append((step, value, used[::-1]))
    return kept[::-1]
