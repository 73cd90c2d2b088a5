"""Draws up a schedule for a set of values that are held, others that are moved to the host, and how
long what comes back is retained.

A value that was computed again or brought back is retained as long as it is used again within its
window, counted in backward steps; it is let go of at its last use before it comes back anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.schedule import Retrieval, Schedule

FOR_EVER = 1 << 60


def draw(model: TapeModel, held: Collection[int], window: int = FOR_EVER) -> Schedule:
    """The schedule that holds `held` and retains a value for `window` steps."""
    schedule = draw_short(model, held, window, {}, FOR_EVER)
    assert schedule is not None
    return schedule


def draw_short(
    model: TapeModel,
    held: Collection[int],
    window: int,
    windows: Mapping[int, int],
    most: int,
    moved: frozenset[int] = frozenset(),
) -> Schedule | None:
    """The same, where values may have windows of their own and those of `moved`, none of which is
    held, are brought back; None for one of more than `most` computations and moves back.
    """
    moves = _moves(model, held, window, windows, most, moved)
    return None if moves is None else freed(model, frozenset(held), moves, moved)


def _moves(
    model: TapeModel,
    held: Collection[int],
    window: int,
    windows: Mapping[int, int],
    most: int,
    moved: frozenset[int],
) -> list[tuple[int, int, list[int]]] | None:
    """Of each retrieval: step, value, and what is computed or brought back before it."""
    parents = model.parents_under(moved)
    last_use: dict[int, int] = {
        node: FOR_EVER
        for node, can_recompute in enumerate(model.can_recompute)
        if not can_recompute or node in held
    }
    moves = []
    now, step_before = 0, None
    for step, value in model.requests:
        if step != step_before:
            now, step_before = now + 1, step
        computed: list[int] = []
        stack = [value]
        while stack:
            node = stack[-1]
            if now - last_use.get(node, -FOR_EVER) > windows.get(node, window):
                missing = [
                    parent
                    for parent in parents[node]
                    if now - last_use.get(parent, -FOR_EVER) > windows.get(parent, window)
                ]
                if missing:
                    stack += reversed(missing)
                    continue
                computed.append(node)
                for parent in parents[node]:
                    last_use[parent] = max(now, last_use[parent])
            stack.pop()
            last_use[node] = max(now, last_use.get(node, now))
        moves.append((step, value, computed))
        most -= len(computed)
        if most < 0:
            return None
    return moves


def freed(
    model: TapeModel,
    held: frozenset[int],
    moves: list[tuple[int, int, list[int]]],
    moved: frozenset[int] = frozenset(),
) -> Schedule:
    """The schedule of these computations and moves back, in which every value is let go of at its
    last use; what would have none is not computed, nor moved.
    """
    parents = model.parents_under(moved)
    alive: set[int] = set()
    back: set[int] = set()
    retrievals: list[Retrieval] = []
    for step, value, computed in reversed(moves):
        after = () if value in alive else (value,)
        alive.add(value)
        backwards: list[int] = []
        for node in reversed(computed):
            if node not in alive:
                continue
            last = [parent for parent in parents[node] if parent not in alive]
            backwards += [~parent for parent in reversed(last)]
            alive.update(last)
            backwards.append(node)
            back.add(node)
            alive.discard(node)
        retrievals.append(Retrieval(step, value, tuple(reversed(backwards)), after))
    used = frozenset(node for node in held if node in alive)
    return Schedule(used, tuple(reversed(retrievals)), moved & back)
