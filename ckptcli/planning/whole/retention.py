"""Whole-graph search by CP-SAT: of each value some intervals during which it is resident.

A value has a first interval and at most `most` more, each of which begins where it is computed and
reaches up to its last use; together they stay within the budget at every slot. A slot is a number
of a value, or a moment, in a stage. Which intervals there are, and where they begin, is the search.

Invariant: an answer obeys the budget in the solver's units, which are never smaller than true.

Source: Bartan et al., Moccasin, ICML 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ckptcli.planning.planners.base import Deadline
from ckptcli.planning.problems.base import Number
from ckptcli.planning.whole.solvers import Solvers, interruptible, seconds_of
from ckptcli.planning.whole.staged import (
    FORWARD,
    Answer,
    Moment,
    Staged,
    Together,
    Value,
    without_waste,
)
from ckptcli.planning.whole.whole_units import units_for

EFFORT = 25.0
"""Over all values, in the solver's own count of its work, the same on every machine. Each way to
search may use it up; a unit is seconds where there are few values, a minute where there are more
than a hundred."""

WORKERS = 8
"""Ways to search that take turns."""

LEFT_OUT = (
    "max_lp",
    "pseudo_costs",
    "reduced_costs",
    "scheduling_intervals_lns",
    "scheduling_precedences_lns",
)
"""Ways that take ten seconds for what they count as a twentieth of a unit."""

HINT_EFFORT = 1.0
"""To complete what is suggested; propagation alone does it, in a hundredth."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to.

    Attributes:
        answer: the cheapest that was found; None for none.
        is_complete: whether the search ended by itself.
    """

    answer: Answer | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval of a value.

    Attributes:
        start, end: its first and its last slot.
        is_there: whether there is such an interval; None for one that is sure.
        is_made: whether the value is computed where it starts, not held from the forward pass.
    """

    start: Any
    end: Any
    is_there: Any
    is_made: bool = True


class Retention:
    """One model of one problem within one budget.

    Args:
        solvers: the libraries.
        staged: the problem.
        budget: in the problem's unit.
        most: how often a value may be computed again.
        below: what computing again may cost at most; None for anything.
    """

    def __init__(
        self, solvers: Solvers, staged: Staged, budget: int, most: int, below: Number | None
    ) -> None:
        self._cp = solvers.cp_model
        self._staged = staged
        self._budget = budget
        self._model = self._cp.CpModel()
        self._moments = max((len(stage.moments) for stage in staged.stages), default=0)
        self._width = len(staged.values) + self._moments
        self._last = self._width * len(staged.stages)
        self._sizes = units_for([*_sizes(staged), budget])
        self._costs = units_for([value.cost for value in staged.values])
        self._intervals = [self._of(v, value, most, below) for v, value in enumerate(staged.values)]
        self._fit()
        for v, value in enumerate(staged.values):
            for interval in self._intervals[v]:
                self._use(value, interval)
        for slot, moment in self._all_moments():
            for needed in moment.needs:
                self._model.add_exactly_one(self._covering(needed, slot))
        for together in staged.forward:
            self._hold(together)
        self._cost(below)

    def slot(self, stage: int, number: int) -> int:
        """Slot 0 is the end of the forward pass."""
        return 1 + stage * self._width + number

    def search(self, deadline: Deadline, hint: Answer | None) -> Searched:
        """The cheapest within the effort, begun from the hint."""
        if hint is not None:
            self._suggest(hint)
            self._complete(deadline)
        solver = self._solver(deadline, EFFORT / max(1, len(self._intervals)), WORKERS)
        solver.parameters.interleave_search = True
        solver.parameters.ignore_subsolvers.extend(LEFT_OUT)
        status = self._solve(solver)
        if status in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return Searched(self._answer(solver), status == self._cp.OPTIMAL)
        return Searched(None, status == self._cp.INFEASIBLE)

    def _solver(self, deadline: Deadline, effort: float, workers: int) -> Any:
        solver = self._cp.CpSolver()
        parameters = solver.parameters
        parameters.max_deterministic_time = effort
        parameters.max_time_in_seconds = seconds_of(deadline)
        parameters.num_workers = workers
        parameters.random_seed = 1
        parameters.catch_sigint_signal = False
        return solver

    def _solve(self, solver: Any) -> Any:
        return interruptible(lambda: solver.solve(self._model), solver.stop_search)

    def _complete(self, deadline: Deadline) -> None:
        """Suggest a value of every variable, where what is suggested is possible.

        From a part of an answer each worker would first look for one in its own way, which takes
        most of the effort.
        """
        solver = self._solver(deadline, HINT_EFFORT, 1)
        solver.parameters.fix_variables_to_their_hinted_value = True
        solver.parameters.stop_after_first_solution = True
        if self._solve(solver) not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return
        values = solver.response_proto.solution
        self._model.clear_hints()
        for index, value in enumerate(values):
            self._model.add_hint(self._model.get_int_var_from_proto_index(index), value)

    def _of(self, v: int, value: Value, most: int, below: Number | None) -> list[Interval]:
        """The intervals of a value."""
        model = self._model
        if value.first == FORWARD:
            end = model.new_int_var(0, self._last, "")
            first = Interval(0, end, model.new_bool_var(""), is_made=False)
        else:
            slot = self.slot(value.first, v)
            end = self._last if value.stays else model.new_int_var(slot, self._last, "")
            first = Interval(slot, end, None)
        found = [first]
        stages = [
            stage
            for stage in range(value.first + 1, value.until + 1)
            if self._staged.stages[stage].computes
        ]
        slots = self._cp.Domain.from_values([self.slot(stage, v) for stage in stages])
        if below is not None and value.cost > 0:
            most = min(most, int(below / value.cost))
        for i in range(0 if value.is_once or value.stays else min(most, len(stages))):
            there = model.new_bool_var("")
            start = model.new_int_var_from_domain(slots, "")
            end = model.new_int_var(0, self._last, "")
            if i > 0:
                model.add_implication(there, found[-1].is_there)
            if i > 0 or value.first != FORWARD:
                model.add(start > found[-1].end).only_enforce_if(there)
            else:
                model.add(start > first.end).only_enforce_if(there, first.is_there)
            found.append(Interval(start, end, there))
        return found

    def _fit(self) -> None:
        """Everything stays within the budget."""
        up = self._sizes.up
        intervals: list[Any] = []
        demands: list[int] = []

        def enter(interval: Any, demand: int) -> None:
            if demand > 0:
                intervals.append(interval)
                demands.append(demand)

        for value, several in zip(self._staged.values, self._intervals):
            size = 0 if value.lies_in is not None else up(value.size)
            for each in several:
                enter(self._lasting(each), size)
                if each.is_made:
                    enter(self._brief(each.start, 1, each.is_there), up(value.rise) - size)
        for number, stage in enumerate(self._staged.stages):
            computing = self._brief(self.slot(number, 0), len(self._staged.values), None)
            enter(computing, up(stage.takes))
        for slot, moment in self._all_moments():
            enter(self._brief(slot, 1, None), up(moment.takes))
        self._model.add_cumulative(intervals, demands, self._sizes.down(self._budget))

    def _lasting(self, interval: Interval) -> Any:
        size = self._model.new_int_var(1, self._last + 1, "")
        ends = interval.end + 1
        if interval.is_there is None:
            return self._model.new_interval_var(interval.start, size, ends, "")
        return self._model.new_optional_interval_var(
            interval.start, size, ends, interval.is_there, ""
        )

    def _brief(self, start: Any, size: int, is_there: Any) -> Any:
        if is_there is None:
            return self._model.new_fixed_size_interval_var(start, size, "")
        return self._model.new_optional_fixed_size_interval_var(start, size, is_there, "")

    def _all_moments(self) -> Iterator[tuple[int, Moment]]:
        """Each with its slot."""
        count = len(self._staged.values)
        for number, stage in enumerate(self._staged.stages):
            for place, moment in enumerate(stage.moments):
                yield self.slot(number, count + place), moment

    def _covering(self, value: int, slot: Any) -> list[Any]:
        """Literals, one an interval: it began before the slot and reaches up to it."""
        model, literals = self._model, []
        for interval in self._intervals[value]:
            literal = model.new_bool_var("")
            model.add(interval.start < slot).only_enforce_if(literal)
            model.add(interval.end >= slot).only_enforce_if(literal)
            if interval.is_there is not None:
                model.add_implication(literal, interval.is_there)
            literals.append(literal)
        return literals

    def _use(self, value: Value, interval: Interval) -> None:
        """Where it is computed, its parents are resident; their memory, while it lies in that."""
        model = self._model
        if not interval.is_made:
            if value.lies_in is not None:
                owner = self._intervals[value.lies_in][0]
                model.add_implication(interval.is_there, owner.is_there)
                model.add(owner.end >= interval.end).only_enforce_if(interval.is_there)
            return
        for parent in value.parents:
            literals = self._covering(parent, interval.start)
            if interval.is_there is None:
                model.add_exactly_one(literals)
            else:
                model.add(sum(literals) == interval.is_there)
            if parent == value.lies_in:
                for literal, owner in zip(literals, self._intervals[parent]):
                    model.add(owner.end >= interval.end).only_enforce_if(literal)

    def _hold(self, together: Together) -> None:
        """What the forward pass holds fits at one of its moments."""
        model, up = self._model, self._sizes.up
        total = up(together.takes)
        for size, values in together.blocks:
            held = model.new_bool_var("")
            for value in values:
                model.add_implication(self._intervals[value][0].is_there, held)
            total += up(size) * held
        model.add(total <= self._sizes.down(self._budget))

    def _cost(self, below: Number | None) -> None:
        """What is computed again costs as little as possible, and no more than is known."""
        near = self._costs.near
        cost = sum(
            near(value.cost) * interval.is_there
            for value, several in zip(self._staged.values, self._intervals)
            for interval in several[1:]
        )
        if below is not None:
            self._model.add(cost <= near(below) + len(self._staged.values))
        self._model.minimize(cost)

    def _answer(self, solver: Any) -> Answer:
        held, made = set(), []
        for v, (first, *others) in enumerate(self._intervals):
            if not first.is_made and solver.boolean_value(first.is_there):
                held.add(v)
            made += [solver.value(i.start) for i in others if solver.boolean_value(i.is_there)]
        places = (divmod(slot - 1, self._width) for slot in sorted(made))
        return without_waste(self._staged, Answer(frozenset(held), tuple(places)))

    def _suggest(self, hint: Answer) -> None:
        """Begin from an answer; what this form cannot say of it is left out.

        Where intervals end follows from where they begin, so that the completion says it.
        """
        starts: list[list[int]] = [[] for _ in self._intervals]
        for stage, v in hint.made:
            starts[v].append(self.slot(stage, v))
        for v, (first, *others) in enumerate(self._intervals):
            if not first.is_made:
                self._model.add_hint(first.is_there, v in hint.held)
            known = sorted(starts[v])
            for i, interval in enumerate(others):
                self._model.add_hint(interval.is_there, i < len(known))
                if i < len(known):
                    self._model.add_hint(interval.start, known[i])


def _sizes(staged: Staged) -> Iterator[int]:
    """Every size of the problem."""
    for value in staged.values:
        yield value.size
        yield value.rise
    for stage in staged.stages:
        yield stage.takes
        for moment in stage.moments:
            yield moment.takes
    for together in staged.forward:
        yield together.takes
        for size, _ in together.blocks:
            yield size
