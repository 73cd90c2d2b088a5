"""Makes a plan: asks planners, plays what they draft, takes the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ckptcli.errors import PlanError
from ckptcli.planning.actions import Action
from ckptcli.planning.bounds import lower_bound_of
from ckptcli.planning.floors import floor_of
from ckptcli.planning.plan import MOST_ACTIONS, Attempt, Plan
from ckptcli.planning.planners.base import Draft, Floor, Planner, Request
from ckptcli.planning.planners.registry import AUTO, planners_for
from ckptcli.planning.play.base import Played, play
from ckptcli.planning.play.steps import Game
from ckptcli.planning.problems.base import Number, Problem
from ckptcli.planning.problems.steps import StepsProblem

FLOOR_SHARE = 0.2
"""The part of the time that the bound of each action gets."""

OTHERS_SHARE = 0.5
"""The part that others get before a planner that starts from their plans."""

ROUNDING = 1e-12
"""How far two sums of the same costs that are no whole numbers may be apart."""


def make_plan(problem: Problem, request: Request, planner: str = AUTO) -> Plan:
    """The best plan of the planner, or of all that fit the problem's kind and size.

    Raises:
        UnknownNameError: no planner has this name.
        UsageError: the planner is for another kind of problem, or the request lacks what it needs.
        PlanError: a planner drafted what the problem excludes, which is a defect.
    """
    return _Asking(problem, request).of(planners_for(planner, problem), planner)


def judged(problem: Problem, request: Request, name: str, draft: Draft) -> Plan:
    """A draft as a plan: played, unless it is too long, and feasible if its peak is in the budget.

    Raises:
        PlanError: the draft is not possible.
    """
    nothing = Plan(problem, request.budget, name, False)
    if draft.actions is None:
        return nothing
    if draft.length is None or draft.length <= MOST_ACTIONS:
        actions = tuple(draft.actions())
        played = play(problem, actions)
        found = replace(nothing, actions=lambda: actions, length=len(actions))
    else:
        assert draft.cost is not None
        assert draft.peak is not None
        played = Played(draft.cost, draft.peak, 0, "tape")
        found = replace(nothing, actions=draft.actions, length=draft.length)
    if not request.fits(played.peak):
        return replace(nothing, min_budget=played.peak)
    return replace(
        found,
        feasible=True,
        runs=played.runs,
        cost=played.cost,
        peak=played.peak,
        host=played.host,
        recomputed=played.cost - problem.base_cost,
        evaluations=played.evaluations or None,
        saved=draft.saved,
        limits=draft.limits,
        min_budget=played.peak,
    )


def written(plan: Plan) -> Iterator[Action]:
    """The actions of a feasible plan; one that was too long to play is played as they are made.

    Raises:
        PlanError: it is not possible, or does not cost what was said.
    """
    assert plan.actions is not None
    if not isinstance(plan.problem, StepsProblem) or (plan.length or 0) <= MOST_ACTIONS:
        yield from plan.actions()
        return
    game = Game(plan.problem)
    for action in plan.actions():
        game.do(action)
        yield action
    played = game.end()
    if (played.cost, played.peak) != (plan.cost, plan.peak):
        raise PlanError(
            f"the schedule of `{plan.planner}` costs {played.cost} with a peak of {played.peak}, "
            f"not {plan.cost} with {plan.peak}"
        )


class _Asking:
    """The plans so far, and the bounds that every planner adds to."""

    def __init__(self, problem: Problem, request: Request) -> None:
        self.problem = problem
        self.request = request
        self.best: Plan | None = None
        self.lower_bound: Number | None = None
        self.floor: Floor | None = None
        self.min_budget: int | None = None
        self.attempts: list[Attempt] = []
        self.limits: list[str] = []

    def of(self, planners: Sequence[Planner], name: str) -> Plan:
        """Ask each in turn; what is proved needs no further planner."""
        whole = self.request
        if any(planner.starts_from_others for planner in planners):
            self.request = replace(whole, deadline=whole.deadline.part(OTHERS_SHARE))
        self.floor = floor_of(self.problem, self.request.deadline.part(FLOOR_SHARE))
        for planner in planners:
            if planner.starts_from_others:
                self.request = whole
            why = planner.too_large(self.problem) if len(planners) > 1 else ""
            if why:
                self.attempts.append(Attempt(planner.keyword, None, None, why))
            elif not self._is_decided():
                self._ask(planner)
        if not self._is_decided():
            self._learn(Draft(lower_bound=self._lower_bound()), None)
        self._look_for_smallest([p for p in planners if not p.too_large(self.problem)])
        return self._answer(name)

    def _lower_bound(self) -> Number | None:
        """Known without a search; of a plan that exists."""
        budget = self.request.budget
        if self.best is None:
            return None
        if budget is None:
            return self.problem.base_cost
        return lower_bound_of(self.problem, budget)

    def _look_for_smallest(self, planners: Sequence[Planner]) -> None:
        """The smallest budget; beside a plan that fits no long search is made for it."""
        known = self.best.cost if self.best else None
        request = replace(self.request, best_cost=known)
        for planner in planners:
            if not self._least_is_proved():
                self._learn(planner.smallest(self.problem, request, self.floor), None)

    def _ask(self, planner: Planner) -> None:
        request = self.request
        if self.best is not None:
            request = replace(request, best_cost=self.best.cost, best=self.best.actions)
        draft = planner.draft(self.problem, request)
        plan = judged(self.problem, request, planner.keyword, draft)
        self._learn(draft, plan.min_budget)
        self.limits += [limit for limit in draft.limits if limit not in self.limits]
        note = planner.guarantee if plan.feasible else self._why_none(draft)
        self.attempts.append(Attempt(planner.keyword, plan.cost, plan.peak, note))
        if plan.feasible and (self.best is None or _merit(plan) < _merit(self.best)):
            self.best = plan

    def _learn(self, draft: Draft, peak: int | None) -> None:
        """Take what a draft proves; `peak` is that of its plan."""
        if draft.lower_bound is not None:
            self.lower_bound = max(draft.lower_bound, self.lower_bound or 0)
        if draft.floor is not None and (self.floor is None or draft.floor.bytes > self.floor.bytes):
            self.floor = draft.floor
        for budget in (draft.min_budget, peak):
            if budget is not None and (self.min_budget is None or budget < self.min_budget):
                self.min_budget = budget

    def _why_none(self, draft: Draft) -> str:
        """What is said of a planner without a plan."""
        if self.best is not None and draft.lower_bound == self.best.cost:
            return "nothing costs less than the plan that is known"
        if self.best is not None:
            return "no cheaper plan was found"
        return "no plan within the budget"

    def _is_decided(self) -> bool:
        """Whether a plan is proved to be best, or none to be possible."""
        if self.best is not None:
            return self._is_proved(self.best)
        return self.floor is not None and not self.request.fits(self.floor.bytes)

    def _is_proved(self, plan: Plan) -> bool:
        if self.lower_bound is None or plan.cost is None:
            return False
        rounding = ROUNDING * plan.cost if isinstance(plan.cost, float) else 0
        return plan.cost - rounding <= self.lower_bound

    def _least_is_proved(self) -> bool:
        return self.floor is not None and self.floor.bytes == self.min_budget

    def _answer(self, name: str) -> Plan:
        best = self.best or Plan(self.problem, self.request.budget, name, False)
        is_proved = self._is_proved(best)
        return replace(
            best,
            min_budget=self.min_budget,
            min_budget_proved=self._least_is_proved(),
            floor=self.floor,
            lower_bound=self.lower_bound,
            proved_optimal=is_proved,
            limits=() if is_proved else tuple(self.limits),
            attempts=tuple(self.attempts),
        )


def _merit(plan: Plan) -> tuple[Number, int, bool, int]:
    """Ties store rather than compute again, and run on the tape rather than as a program."""
    assert plan.cost is not None
    assert plan.peak is not None
    return plan.cost, plan.evaluations or 0, plan.runs != "tape", plan.peak
