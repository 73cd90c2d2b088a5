"""Reversing equal steps where a slot holds a state or the tape of a step (after Maddison, 2024).

`costs[s][n]` is the least number of evaluations, taping included, that reverse n steps with s free
slots, the first state live and in none. The step is taped into a slot; or the state is stored, then
m steps are advanced, and the rest is reversed before the first m are:

    p(n, s) = min(1 + p(n - 1, s - 1), min over m of m + p(n - m, s - 1) + p(m, s))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckptcli.planning.actions import (
    ADVANCE,
    FREE,
    RESTORE,
    REVERSE,
    REVERSE_TAPE,
    STORE,
    TAPE,
    Action,
)

NEVER = 1 << 60


class MixedTable:
    """All costs up to n steps and s slots; `advances[s][n]` is the best m, 0 for a tape."""

    def __init__(self, n: int, slots: int) -> None:
        self.n, self.slots = n, min(slots, n - 1)
        none = np.full(n + 1, NEVER)
        none[:2] = 0, 1
        self.costs = [none]
        self.advances = [np.zeros(n + 1, int)]
        self._steps = np.arange(n + 1)
        for _ in range(self.slots):
            self._add_row(self.costs[-1])

    def _add_row(self, fewer: Any) -> None:
        row = np.zeros(self.n + 1, int)
        advances = np.zeros(self.n + 1, int)
        row[1] = 1
        for n in range(2, self.n + 1):
            stored = self._steps[1:n] + fewer[n - 1 : 0 : -1] + row[1:n]
            m = int(stored.argmin())
            taped = 1 + fewer[n - 1]
            row[n] = min(taped, stored[m])
            if stored[m] < taped:
                advances[n] = m + 1
        self.costs.append(row)
        self.advances.append(advances)

    def cost(self) -> int:
        """The least number of evaluations of all steps; `NEVER` or more where it cannot be done."""
        return int(self.costs[-1][self.n])

    def schedule(self) -> Iterator[Action]:
        """The actions of the least cost."""
        todo: list[tuple[int, int, int] | Action] = [(0, self.n, self.slots)]
        while todo:
            part = todo.pop()
            if isinstance(part[0], str):
                yield part
                continue
            start, stop, slots = (int(each) for each in part)
            if stop - start == 1:
                yield REVERSE, stop
                continue
            m = int(self.advances[min(slots, self.slots)][stop - start])
            if not m:
                yield TAPE, start + 1
                todo += [(REVERSE_TAPE, start + 1), (start + 1, stop, slots - 1)]
                continue
            yield STORE, start
            yield ADVANCE, start, start + m
            todo += [(start, start + m, slots), (FREE, start), (RESTORE, start)]
            todo.append((start + m, stop, slots - 1))
