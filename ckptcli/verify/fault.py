"""How what comes back is to go wrong, as the command line names it; `perturb` has what it computes.

No array library is imported, so that a help text costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ckptcli.errors import UsageError
from ckptcli.units import count

KINDS = ("reciprocal", "norm", "ulp", "layout", "float32", "host")
"""Those that need no further word."""

SIGN = "sign:STEP,a|b,COLUMN"
GRAMMAR = "|".join((*KINDS, SIGN))


@dataclass(frozen=True, slots=True)
class Signs:
    """Which singular vectors come back with the other sign: of one svd of one step, from 0."""

    step: int
    second: bool
    columns: tuple[int, ...]
    """Empty for all."""


@dataclass(slots=True)
class Fault:
    """One way in which values come back wrongly.

    Attributes:
        text: as it was given.
        kind: one of `KINDS`; "sign" for `signs`.
        hits: how many values were computed, or came back from the host, otherwise so far.
    """

    text: str
    kind: str
    signs: Signs | None = None
    hits: int = field(default=0, compare=False)

    @property
    def met(self) -> str:
        """What it does something to, in words."""
        return "comes back from the host" if self.kind == "host" else "is computed again"

    @property
    def done(self) -> str:
        """What it did, in words."""
        values = count(self.hits, "value")
        return f"spoilt {values} there" if self.kind == "host" else f"computed {values} again"

    @property
    def least_steps(self) -> int:
        """The step that the fault names, which a program has to have; 0 if it names none."""
        return 0 if self.signs is None else self.signs.step + 1


def parse_fault(text: str) -> Fault:
    """The fault that a text names. COLUMN may be several, 5+6, or `all`.

    Raises:
        UsageError: a text that names none.
    """
    if text in KINDS:
        return Fault(text, text)
    match = re.fullmatch(r"sign:([0-9]{1,6}),([ab]),(all|[0-9]{1,6}(?:\+[0-9]{1,6})*)", text)
    if match is None or match[1].strip("0") == "":
        raise UsageError(
            f"`{text}` is no way to perturb a replay",
            f"write {GRAMMAR}, with steps from 1 and columns from 0; columns are 5, 5+6 or all",
        )
    columns = () if match[3] == "all" else tuple(int(column) for column in match[3].split("+"))
    return Fault(text, "sign", Signs(int(match[1]) - 1, match[2] == "b", columns))
