"""What every planning problem has, and how a kind of problem makes itself known.

Invariant: a problem is frozen and valid: what a file has wrong is found while it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from ckptcli.planning.problems.fields import Fields

Number = int | float
"""A cost: a whole number stays one, of any size."""


class Problem(Protocol):
    """A kind of planning problem.

    Attributes:
        kind: what files call it.
        unit: what a budget for it counts, in a sentence, one of it: "unit of memory", "slot".
    """

    kind: ClassVar[str]
    unit: ClassVar[str]

    @property
    def base_cost(self) -> Number:
        """What everything costs if nothing is computed twice."""
        ...

    @property
    def title(self) -> str:
        """What it is in a few words: `dag of 72 nodes`."""
        ...


Reader = Callable[["Fields"], Problem]
ReaderFunction = TypeVar("ReaderFunction", bound=Reader)

READERS: dict[str, Reader] = {}


def reads(kind: str) -> Callable[[ReaderFunction], ReaderFunction]:
    """Decorator: the function makes problems of files of this kind."""

    def enter(reader: ReaderFunction) -> ReaderFunction:
        READERS[kind] = reader
        return reader

    return enter
