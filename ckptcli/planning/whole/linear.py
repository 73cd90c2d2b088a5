"""A linear program of parts of values, and what its solution proves.

A schedule is a solution of whole numbers, so none costs less than the best of parts. HiGHS solves
it; the bound is not its figure but what its dual values prove, summed here.

Invariant: `Relaxation.bound` is at most the optimum, whatever the solver gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, gcd
from typing import Any

import numpy as np

from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.problems.base import Number
from ckptcli.planning.whole.solvers import interruptible, seconds_of, silent_stdout

MOST_ITERATIONS = 100_000
MOST_COLUMNS = 60_000
"""Of a program that is solved within seconds."""

ROUNDING = 1e-9
"""Of the total: far more than sums of so many numbers are off."""

MOST_TOTALS = 1_000_000
"""Where no plan is possible the bound has no end."""

Terms = Mapping[int, float]
"""Column -> its coefficient."""


class Relaxation:
    """The program: minimise cost, every column between 0 and 1.

    Costs count in parts of their sum, `costs` being those of every value; sizes in parts of
    `budget`.
    """

    def __init__(self, costs: Sequence[Number], budget: int) -> None:
        self._total = Fraction(sum(costs))
        is_whole = all(isinstance(cost, int) for cost in costs)
        self._step = gcd(*map(int, costs)) if is_whole else 0
        self._budget = max(1, budget)
        self._costs: list[float] = []
        self._least: list[float] = []
        self._rows: list[tuple[float, list[int], list[float]]] = []

    def column(self, cost: Number = 0, least: float = 0.0) -> int:
        """A new one, its number."""
        self._costs.append(float(Fraction(cost) / self._total) if self._total else 0.0)
        self._least.append(least)
        return len(self._costs) - 1

    def at_least(self, bound: float, terms: Terms) -> None:
        """The terms together are no less."""
        self._rows.append((bound, list(terms), list(terms.values())))

    def fits(self, sizes: Mapping[int, int], room: int) -> None:
        """The columns, each of a size, take no more than room together."""
        self.at_least(-self._part(room), {column: -self._part(s) for column, s in sizes.items()})

    def _part(self, size: int) -> float:
        """Of the budget; nothing that is far above it has to be told from what is further above."""
        most = 4 * self._budget
        return max(-most, min(size, most)) / self._budget

    def bound(self, highspy: Any, deadline: Deadline) -> Number | None:
        """What no plan costs less than; None where the solver failed."""
        duals = self._duals(highspy, deadline)
        if duals is None or not np.all(np.isfinite(duals)):
            return None
        bounds = np.array([row[0] for row in self._rows])
        duals = np.maximum(duals, 0.0)
        index, values, lengths = self._matrix()
        weights = values * np.repeat(duals, lengths)
        left = np.array(self._costs) - np.bincount(index, weights, len(self._costs))
        columns = np.where(left < 0, left, left * np.array(self._least))
        part = Fraction(float(duals @ bounds + columns.sum()) - ROUNDING)
        found = self._total * min(Fraction(MOST_TOTALS), part)
        return self._step * ceil(found / self._step) if self._step else float(found)

    def _matrix(self) -> tuple[Any, Any, Any]:
        index = np.array([i for row in self._rows for i in row[1]], dtype=np.int32)
        values = np.array([value for row in self._rows for value in row[2]])
        return index, values, np.array([len(row[1]) for row in self._rows])

    def _duals(self, highspy: Any, deadline: Deadline) -> Any:
        """Of each row."""
        index, values, lengths = self._matrix()
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._rows)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_ = np.array(self._least)
        program.col_upper_ = np.ones(len(self._costs))
        program.row_lower_ = np.array([row[0] for row in self._rows])
        program.row_upper_ = np.full(len(self._rows), highspy.kHighsInf)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        program.a_matrix_.index_, program.a_matrix_.value_ = index, values
        with silent_stdout():
            solver = highspy.Highs()
            solver.setOptionValue("output_flag", False)
            solver.setOptionValue("threads", 1)
            solver.setOptionValue("random_seed", 0)
            solver.setOptionValue("simplex_iteration_limit", MOST_ITERATIONS)
            solver.setOptionValue("time_limit", seconds_of(deadline))
            solver.passModel(program)
            interruptible(solver.run, solver.cancelSolve)
            duals = np.array(solver.getSolution().row_dual, dtype=float)
        return duals if len(duals) == len(self._rows) else None
