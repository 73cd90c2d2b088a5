"""What no schedule of a program on the tape gets below, in the words of a plan."""

from __future__ import annotations

from ckptcli.planning.planners.base import Floor
from ckptcli.planning.problems.program import ProgramProblem
from ckptcli.planning.tape.names import value_names


def floor_of(problem: ProgramProblem) -> Floor:
    """The largest of what each step takes with nothing but its own values."""
    found = problem.profile.floor()
    if found.step is None:
        return Floor(found.peak_bytes, "the forward pass")
    names_of = value_names(problem.graph)
    names = tuple(names_of[value] for value in found.values)
    where = f"backward of {names_of[found.step]}"
    return Floor(found.peak_bytes, where, names, found.beside_bytes)
