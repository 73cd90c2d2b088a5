"""What is found where a JAX function's checkpoints compute again in a compiled program."""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.measure.wrong_values import EquationValue


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was found in the compiled program, of which few values at a time can be seen.

    Attributes:
        programs: how many were compiled to look.
        first: the first value that is recomputed otherwise; None if none was seen.
        farthest: the one that lies farthest apart of those looked at after it.
        is_undisturbed: whether the program that shows the first has the gradient that is in
            question, bit for bit.
    """

    programs: int
    first: EquationValue | None
    farthest: EquationValue | None
    is_undisturbed: bool
