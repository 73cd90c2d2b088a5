"""What JAX holds for the backward pass of a function of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.measure.saved_list import SavedWords

SUMS = ("line", "function", "name", "op")
"""By what sums are taken."""

ARGUMENT, CONSTANT, LITERAL, POLICY, COMPUTED = (
    "argument",
    "constant",
    "literal",
    "policy",
    "computed",
)
NOT_HELD = (ARGUMENT, LITERAL)
"""Kinds that take no memory of their own: arguments are there anyway, a literal is in the code."""


@dataclass(frozen=True, slots=True)
class Residual:
    """One value that the backward pass gets from the forward pass.

    Attributes:
        kind: `argument` of the function, `constant` that it closes over, `literal` in the program,
            `policy` if a checkpoint's policy saved it, else `computed`.
        bytes: its size.
        primitive: what made it; "" for what the program did not make.
        within: the calls and loops that this is inside of, outermost first, `jit loss, scan`.
        name: what `checkpoint_name` calls it, or the argument's; "" for nothing.
        source: the line as JAX names it, FILE:LINE:COLUMN (FUNCTION); of the outermost call.
        line, function: the user's own line that led to it, FILE:LINE, and its function; "" where
            there is none.
    """

    kind: str
    shape: Sequence[int]
    dtype: str
    bytes: int
    primitive: str
    within: str
    name: str
    source: str
    line: str
    function: str

    @property
    def not_held_as(self) -> str:
        """Its kind, if that takes no memory of its own."""
        return self.kind if self.kind in NOT_HELD else ""

    def words(self) -> SavedWords:
        """In the words of the list."""
        made = self.primitive or self.kind
        return SavedWords(
            op=made if self.kind in (COMPUTED, made) else f"{made}, {self.kind}",
            name=self.name,
            made_at=self._line,
            function=self.function,
            within=self.within,
        )

    def keys(self, depth: int | None) -> Mapping[str, str]:
        """Line, function, name and primitive."""
        del depth
        keys = {
            "line": self._line,
            "function": self.function,
            "name": self.name,
            "op": self.primitive or self.kind,
        }
        return {by: key for by, key in keys.items() if key}

    @property
    def _line(self) -> str:
        return self.line or self.source
