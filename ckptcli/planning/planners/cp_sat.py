"""Search over the whole graph by CP-SAT, with a bound by HiGHS; both come with the extra `plan`.

It starts from the best plan of the other planners, and searches among plans in the order of that
one's first computations (of a program, in the order of its steps) that compute each value a few
times at most. The bound is of every plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ckptcli.errors import UsageError
from ckptcli.planning.actions import Action
from ckptcli.planning.dag_view import DagView
from ckptcli.planning.orders import freeing
from ckptcli.planning.planners.base import TIME, Deadline, Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.problems.base import Number
from ckptcli.planning.problems.dag import DagProblem
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.schedule import schedule_of
from ckptcli.planning.whole import dag_relaxation, dag_stages, tape_relaxation, tape_stages
from ckptcli.planning.whole.linear import Relaxation
from ckptcli.planning.whole.retention import Retention
from ckptcli.planning.whole.solvers import Solvers, load_solvers
from ckptcli.planning.whole.staged import Answer, Staged

MOST_VALUES = 600
FEW, MANY = 2, 5
"""A value may be computed again so often, or as often as in the plan that is known; without one, or
at most, `MANY` times."""

BOUND_SHARE = 0.3
"""The part of the time that the bound gets."""

EFFORT = "the effort of the solver"

Actions = Callable[[], Iterable[Action]]


@register
class CpSat(Planner):
    """Retention intervals in CP-SAT, a linear relaxation in HiGHS."""

    keyword = "cp-sat"
    summary = "search over the whole graph by CP-SAT from the best other plan, a bound by HiGHS"
    guarantee = "nothing but the budget; the bound holds for every plan"
    kinds = (DagProblem.kind, ProgramProblem.kind)
    rank = None
    starts_from_others = True

    def check_installed(self) -> None:
        load_solvers()

    def too_large(self, problem: DagProblem | ProgramProblem) -> str:
        values = problem.needed if isinstance(problem, DagProblem) else problem.model.values
        count = len(values)
        return f"{count} values; it takes {MOST_VALUES}" if count > MOST_VALUES else ""

    def draft(self, problem: DagProblem | ProgramProblem, request: Request) -> Draft:
        if isinstance(problem, ProgramProblem) and problem.moving.host_bytes:
            raise UsageError(
                f"planner `{self.keyword}` moves nothing to the host, and its bound is of plans "
                "that do not",
                "leave out --host-memory, or --planner",
            )
        if request.budget is None:
            return Draft()
        solvers = load_solvers()
        if isinstance(problem, ProgramProblem):
            return _of_program(solvers, problem, request, request.budget)
        return _of_dag(solvers, problem, request, request.budget)


def _of_dag(solvers: Solvers, problem: DagProblem, request: Request, budget: int) -> Draft:
    view = DagView(problem)
    bound = _bound(solvers, dag_relaxation.relaxation(view, budget), request.deadline)
    order, hint = freeing(view), None
    if request.best is not None:
        order = dag_stages.order_of(view, request.best())
        hint = dag_stages.answer_of(view, order, request.best())
    search = _Search(solvers, dag_stages.staged(view, order), request, problem.base_cost)
    answer, limits = search.run(budget, hint, "one order of first computations")
    moves = None if answer is None else dag_stages.moves_of(view, order, answer)
    actions = None if moves is None else view.schedule(moves)
    return Draft(actions, lower_bound=bound, limits=limits)


def _of_program(solvers: Solvers, problem: ProgramProblem, request: Request, budget: int) -> Draft:
    bound = _bound(solvers, tape_relaxation.relaxation(problem, budget), request.deadline)
    hint = None
    if request.best is not None:
        hint = tape_stages.answer_of(problem, schedule_of(request.best()))
    search = _Search(solvers, tape_stages.staged(problem), request, problem.base_cost)
    answer, limits = search.run(budget, hint, "one order of computations before a step")
    actions = None if answer is None else tape_stages.schedule_of(problem, answer).actions
    return Draft(
        actions,
        lower_bound=None if bound is None else problem.base_cost + max(0, bound),
        limits=limits,
    )


def _bound(solvers: Solvers, relaxation: Relaxation, deadline: Deadline) -> Number | None:
    return relaxation.bound(solvers.highspy, deadline.part(BOUND_SHARE))


class _Search:
    """One search, and what limited it."""

    def __init__(
        self, solvers: Solvers, staged: Staged, request: Request, base_cost: Number
    ) -> None:
        self._solvers, self._staged, self._request = solvers, staged, request
        self._below = None if request.best_cost is None else request.best_cost - base_cost

    def run(
        self, budget: int, hint: Answer | None, order: str
    ) -> tuple[Answer | None, tuple[str, ...]]:
        """The answer, and what kept it from being proved."""
        most = MANY if hint is None else min(MANY, max(FEW, _most_again(hint)))
        model = Retention(self._solvers, self._staged, budget, most, self._below)
        found = model.search(self._request.deadline, hint)
        cap = f"at most {most} more computations of a value"
        if found.is_complete:
            return found.answer, (cap, order)
        ended = TIME if self._request.deadline.passed else EFFORT
        return found.answer, (ended, cap, order)


def _most_again(answer: Answer) -> int:
    counts: dict[int, int] = {}
    for _, value in answer.made:
        counts[value] = counts.get(value, 0) + 1
    return max(counts.values(), default=0)
