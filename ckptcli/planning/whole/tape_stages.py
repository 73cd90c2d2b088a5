"""A recorded program in the order of its backward steps, as stages; and an answer as a schedule."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.drawing import freed
from ckptcli.planning.tape.exact import bits
from ckptcli.planning.tape.profile import TapeProfile
from ckptcli.planning.tape.schedule import Schedule
from ckptcli.planning.whole.staged import (
    FORWARD,
    Answer,
    Moment,
    Stage,
    Staged,
    Together,
    Value,
    last_uses,
)


def staged(problem: ProgramProblem) -> Staged:
    """Values are numbered as `model.values` has them, stages are steps in their order."""
    model, profile, player = problem.model, problem.profile, problem.player
    place = {node: i for i, node in enumerate(model.values)}
    nodes = model.graph.nodes
    parents = [tuple(place[p] for p in model.parents[v] if p in place) for v in model.values]
    needed = [[place[v] for v in each if v in place] for each in profile.needed]
    until = last_uses(parents, needed)
    values = []
    for i, node in enumerate(model.values):
        memory = nodes[node].memory_of
        owners = [p for p in parents[i] if nodes[model.values[p]].memory_of == memory]
        size = profile.bytes_of([node])
        values.append(
            Value(
                model.costs[node],
                size,
                max(player.rise_again[node], 0 if owners else size),
                parents[i],
                owners[0] if owners and memory != node else None,
                FORWARD,
                until[i],
            )
        )
    stages = [
        Stage(profile.fixed_bytes[k], tuple(moments(profile, k, place)), bool(profile.needed[k]))
        for k in range(len(profile.steps))
    ]
    return Staged(values, stages, tuple(_forward(problem)))


def moments(profile: TapeProfile, k: int, place: dict[int, int]) -> Iterator[Moment]:
    """The parts of step number `k`, each up to where it lets go of a value."""
    needed, fixed = profile.needed[k], profile.fixed_bytes[k]
    open_places = set(range(len(needed)))
    live = most = 0

    def moment() -> Moment:
        there = sorted({place[needed[p]] for p in open_places if needed[p] in place})
        return Moment(max(0, fixed + most), tuple(there))

    for rise, net, released in profile.items[k]:
        if released is None:
            most = max(most, live + rise)
            live += net
        elif released[0] == profile.steps[k] and released[1] in open_places:
            yield moment()
            open_places.discard(released[1])
            most = live
    yield moment()


def _forward(problem: ProgramProblem) -> Iterator[Together]:
    """What held values take together, each set of blocks once, with the most beside them."""
    most: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = {}
    for live, beside, blocks in problem.player.forward_moments(problem.model.values):
        found = tuple((size, tuple(bits(mask & beside))) for mask, size in blocks if mask & beside)
        most[found] = max(live, most.get(found, 0))
    for found, live in most.items():
        yield Together(live, found)


def answer_of(problem: ProgramProblem, schedule: Schedule) -> Answer:
    """What a schedule holds and computes again, in this form."""
    place = {node: i for i, node in enumerate(problem.model.values)}
    stages = {step: k for k, step in enumerate(problem.profile.steps)}
    made: dict[tuple[int, int], None] = {}
    for retrieval in schedule.retrievals:
        for move in retrieval.before:
            if move >= 0:
                made[stages[retrieval.step], place[move]] = None
    return Answer(frozenset(place[v] for v in schedule.held if v in place), tuple(made))


def schedule_of(problem: ProgramProblem, answer: Answer) -> Schedule:
    """The schedule, with every value let go of at its last use."""
    model, profile = problem.model, problem.profile
    computed: dict[int, list[int]] = {}
    for stage, number in answer.made:
        computed.setdefault(stage, []).append(model.values[number])
    moves = []
    for k, step in enumerate(profile.steps):
        for value in profile.needed[k]:
            moves.append((step, value, computed.pop(k, [])))
    return freed(model, frozenset(model.values[v] for v in answer.held), moves)
