"""Plays a schedule on a recorded program; `planning/tape/player.py` has the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptcli.errors import PlanError
from ckptcli.planning.actions import Action
from ckptcli.planning.play.base import Played
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.schedule import Retrieval, Schedule, schedule_of


def play(problem: ProgramProblem, actions: Iterable[Action]) -> Played:
    """What the schedule costs and takes.

    Raises:
        PlanError: it computes or retrieves what is not there, has more on the host than is allowed,
            or is for another program.
    """
    schedule = schedule_of(actions)
    check(problem.model, schedule)
    computed = list(schedule.computations())
    played = problem.player.play(schedule)
    evaluated = sum(1 for node in problem.graph.nodes if node.op)
    if played.host_bytes > problem.moving.host_bytes:
        raise PlanError(
            f"the plan has {played.host_bytes} bytes on the host, and {problem.moving.host_bytes} "
            "are allowed"
        )
    cost = problem.base_cost + problem.model.cost_of(schedule)
    evaluations = evaluated + len(computed)
    return Played(cost, played.peak_bytes, evaluations, "tape", host=played.host_bytes)


def check(model: TapeModel, schedule: Schedule) -> None:
    """Refuse a schedule that is not possible.

    Raises:
        PlanError: what is not possible, and where.
    """
    asked = [(retrieval.step, retrieval.node) for retrieval in schedule.retrievals]
    if asked != model.requests:
        raise PlanError(
            "the plan retrieves other values than the program's backward steps",
            "it is for another program: make it anew",
        )
    there = {n.id for n in model.graph.nodes if not model.can_recompute[n.id]}
    if wrong := sorted(schedule.held & there):
        raise PlanError(f"the plan holds node {wrong[0]}, which cannot be computed again")
    _check_moved(model, schedule)
    there |= schedule.held
    for place, retrieval in enumerate(schedule.retrievals):
        for needs, gives in _moves(model, schedule, retrieval):
            if missing := [node for node in needs if node not in there]:
                raise PlanError(
                    f"at retrieval {place} of the plan, of {model.name(retrieval.node)}, "
                    f"{model.name(missing[0])} is not there",
                    "make the plan anew",
                )
            if gives is None:
                there.discard(needs[0])
            else:
                there.add(gives)


def _check_moved(model: TapeModel, schedule: Schedule) -> None:
    for node in sorted(schedule.moved):
        if not model.can_move(node):
            why = "lies in the memory of another, or cannot be computed again"
        elif node in schedule.held:
            why = "is held as well"
        elif not schedule.returns[node]:
            why = "is never brought back"
        else:
            continue
        raise PlanError(
            f"the plan moves {model.name(node)} to the host, which {why}", "make the plan anew"
        )


def _moves(
    model: TapeModel, schedule: Schedule, retrieval: Retrieval
) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Of each move what has to be there, and what is then; None where it is let go of."""
    for move in retrieval.before:
        if move < 0:
            yield (~move,), None
        else:
            yield () if move in schedule.moved else model.parents[move], move
    yield (retrieval.node,), retrieval.node
    for node in retrieval.after:
        yield (node,), None
