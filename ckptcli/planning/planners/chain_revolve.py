"""The binomial schedule on a chain: slots of the largest tensor, whatever the stages cost."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli.planning.actions import (
    ADVANCE,
    BACKWARD,
    FORWARD,
    FORWARD_ALL,
    FREE,
    REVERSE,
    STORE,
    Action,
)
from ckptcli.planning.planners import revolve
from ckptcli.planning.planners.base import Draft, Planner, Request
from ckptcli.planning.planners.registry import register
from ckptcli.planning.play.chain import tensor
from ckptcli.planning.problems.chain import ChainProblem


@register
class ChainRevolve(Planner):
    """Optimal in the number of forwards where stages are equal and save no more than is kept."""

    keyword = "chain-revolve"
    summary = "binomial checkpointing of a chain, in closed form"
    guarantee = "the least number of forwards for its slots, if one stage at a time saves anything"
    kinds = (ChainProblem.kind,)
    rank = 22

    def draft(self, problem: ChainProblem, request: Request) -> Draft:
        slots = _slots(problem, request.budget)
        return Draft(lambda: schedule(problem.stages, slots)) if slots > 0 else Draft()


def _slots(problem: ChainProblem, budget: int | None) -> int:
    """How many tensors fit beside a live one and what running or reversing any stage takes."""
    widest = max(problem.A)
    if budget is None:
        return problem.stages
    forward = widest + max(problem.of)
    ahead = max(map(sum, zip(problem.B, problem.of)))
    back = max(map(sum, zip(problem.B, problem.D, problem.ob)))
    room = budget - widest - max(problem.D) - max(forward, ahead, back)
    if room < 0 or not widest:
        return problem.stages if room >= 0 else 0
    return min(problem.stages, room // widest)


def schedule(stages: int, slots: int) -> Iterator[Action]:
    """Revolve's actions as a chain has them: a live state that is in no slot is freed behind."""
    stored: set[int] = set()
    for verb, state, *more in revolve.schedule(stages, slots):
        assert isinstance(state, int)
        if verb == STORE:
            stored.add(state)
        elif verb == FREE:
            stored.remove(state)
            yield FREE, tensor(state)
        elif verb == REVERSE:
            yield FORWARD_ALL, state
            yield BACKWARD, state
            if state - 1 not in stored:
                yield FREE, tensor(state - 1)
        elif verb == ADVANCE:
            for i in range(state + 1, int(more[0]) + 1):
                yield FORWARD, i
                if i - 1 not in stored:
                    yield FREE, tensor(i - 1)
