"""What no plan of a recorded program costs less than, in the order of its backward steps.

A value that a step needs was held or computed again before it; it is computed from values that were
there or computed; what is there at each moment of a step fits. In parts of values that is a linear
program, which `dag_relaxation.py` has for dags.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.whole.linear import MOST_COLUMNS, Relaxation
from ckptcli.planning.whole.staged import Moment, Staged, Value
from ckptcli.planning.whole.tape_stages import staged

BEGIN = -1
"""The place before the first step: what is held."""


def relaxation(problem: ProgramProblem, budget: int) -> Relaxation:
    """The program, of as many steps as `MOST_COLUMNS` allow. Its cost is that of what is computed
    again.
    """
    of = staged(problem)
    count = len(of.stages)
    most = max(1, MOST_COLUMNS // (2 * max(1, len(of.values))))
    places = range(count) if count <= most else [count * (i + 1) // most - 1 for i in range(most)]
    return _Built(of, budget, places).program


class _Built:
    """The columns of each value and place; a place is a stage that is looked at."""

    def __init__(self, of: Staged, budget: int, places: Sequence[int]) -> None:
        self.of = of
        self.budget = budget
        self.program = Relaxation([value.cost for value in of.values], budget)
        self._roots = _roots(of.values)
        self._there: dict[tuple[int, int], int] = {}
        """(value, place) -> whether it is there when its event begins; of `BEGIN`, held."""
        self._stays: dict[tuple[int, int], int] = {}
        """The same once the event is over, where that may be another."""
        self._made: dict[tuple[int, int], int] = {}
        for v, value in enumerate(of.values):
            self._there[v, BEGIN] = self.program.column()
            for i, stage in enumerate(places):
                if i and places[i - 1] >= value.until:
                    break
                self._there[v, i] = self.program.column()
                self._made[v, i] = self.program.column(value.cost)
                if any(v in moment.needs for moment in of.stages[stage].moments):
                    self._stays[v, i] = self.program.column()
        self._held()
        for i, stage in enumerate(places):
            self._between(i, range(places[i - 1] + 1 if i else 0, stage + 1))
            self._event(i, stage)

    def _sources(self, v: int, i: int) -> dict[int, float]:
        """Where a value comes from that is there: it was there before, or it is computed."""
        before = self._stays.get((v, i - 1), self._there.get((v, i - 1)))
        columns = (before, self._made.get((v, i)))
        return {column: 1.0 for column in columns if column is not None}

    def _held(self) -> None:
        """What is held fits at each moment of the forward pass."""
        for together in self.of.forward:
            sizes: dict[int, int] = {}
            for size, values in together.blocks:
                held = self.program.column()
                sizes[held] = size
                for v in values:
                    self.program.at_least(0, {held: 1, self._there[v, BEGIN]: -1})
            if sizes:
                self.program.fits(sizes, self.budget - together.takes)

    def _between(self, i: int, stages: range) -> None:
        """From one place to the next."""
        add = self.program.at_least
        for v, value in enumerate(self.of.values):
            if (v, i) not in self._there:
                continue
            add(0, {self._there[v, i]: -1, **self._sources(v, i)})
            for parent in value.parents:
                add(0, {self._made[v, i]: -1, **self._sources(parent, i)})
        needed = {v for k in stages for m in self.of.stages[k].moments for v in m.needs}
        for v in sorted(needed):
            add(1, self._sources(v, i))

    def _event(self, i: int, stage: int) -> None:
        """The moments of a step."""
        moments = self.of.stages[stage].moments
        add = self.program.at_least
        for v in {v for moment in moments for v in moment.needs}:
            add(1, {self._there[v, i]: 1})
            add(0, {self._there[v, i]: 1, self._stays[v, i]: -1})
        for moment in moments:
            self._fits(i, moment)

    def _fits(self, i: int, moment: Moment) -> None:
        """What is there at a moment fits: each block of memory once, and in it the largest part of
        a value.
        """
        blocks: dict[int, list[int]] = {}
        for v in range(len(self.of.values)):
            if v in moment.needs:
                blocks.setdefault(self._roots[v], []).append(self._there[v, i])
            elif (v, i) in self._there:
                column = self._stays.get((v, i), self._there[v, i])
                blocks.setdefault(self._roots[v], []).append(column)
        sizes: dict[int, int] = {}
        for root, columns in blocks.items():
            size = self.of.values[root].size
            if not size:
                continue
            block = columns[0]
            if len(columns) > 1:
                block = self.program.column()
                for column in columns:
                    self.program.at_least(0, {block: 1, column: -1})
            sizes[block] = size
        self.program.fits(sizes, self.budget - moment.takes)


def _roots(values: Sequence[Value]) -> list[int]:
    """Of each value the one in whose memory it lies, itself where it has its own."""
    roots: list[int] = []
    for v, value in enumerate(values):
        roots.append(v if value.lies_in is None else roots[value.lies_in])
    return roots
