"""What JAX holds for the backward pass of a function of the user's own: `ckpt.saved-function/1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "ckpt.saved-function/1"

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
    def is_held(self) -> bool:
        """Whether it counts: arguments and literals do not."""
        return self.kind not in NOT_HELD


@dataclass(frozen=True, slots=True)
class Residuals:
    """All of them, largest first."""

    residuals: Sequence[Residual]

    @property
    def held(self) -> list[Residual]:
        """Those that count."""
        return [residual for residual in self.residuals if residual.is_held]

    @property
    def saved_bytes(self) -> int:
        """What the counted ones take."""
        return sum(residual.bytes for residual in self.held)

    @property
    def saved_tensors(self) -> int:
        """How many are counted."""
        return len(self.held)


@dataclass(frozen=True, slots=True)
class Total:
    """What is held together: a line, a function or a name."""

    key: str
    tensors: int
    bytes: int


TOTALS: dict[str, Callable[[Residual], str]] = {
    "line": lambda residual: residual.line or residual.source,
    "function": lambda residual: residual.function,
    "name": lambda residual: residual.name if residual.is_held else "",
}


def totals_of(residuals: Residuals, by: str) -> list[Total]:
    """The held bytes by `line`, `function` or `name`, largest first; what has none is left out."""
    found: dict[str, list[Residual]] = {}
    for residual in residuals.held:
        found.setdefault(TOTALS[by](residual), []).append(residual)
    totals = [
        Total(key, len(group), sum(residual.bytes for residual in group))
        for key, group in found.items()
        if key
    ]
    return sorted(totals, key=lambda total: -total.bytes)


def saved_object(
    title: str, as_it_is: Residuals, held: dict[str, Residuals | str]
) -> dict[str, Any]:
    """The list of the function as it is, and those under strategies; one that has none says why."""
    return {
        "schema": SCHEMA,
        "function": title,
        **_as_object(as_it_is),
        "strategies": [
            {"strategy": name, **({"reason": of} if isinstance(of, str) else _as_object(of))}
            for name, of in held.items()
        ],
    }


def _as_object(residuals: Residuals) -> dict[str, Any]:
    return {
        "saved_tensors": residuals.saved_tensors,
        "saved_bytes": residuals.saved_bytes,
        "saved": [asdict(residual) for residual in residuals.residuals],
        **{f"by_{by}": [asdict(total) for total in totals_of(residuals, by)] for by in TOTALS},
    }
