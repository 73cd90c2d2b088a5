"""What a recorded pass consists of: calls of the namespace, on values that earlier ones made.

Invariant: an instruction refers to values by number and to everything else by equality, so that two
recordings of one program are equal, whichever arrays they ran on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple


class Value(NamedTuple):
    """A value by its number: what was there before the pass comes first."""

    number: int


class Draw(NamedTuple):
    """The key of a random draw, by its number in the pass."""

    number: int


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple or a list of arguments."""

    parts: tuple[Argument, ...]
    is_list: bool


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Anything else: a number, a shape, a dtype."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant) or type(self.value) is not type(other.value):
            return False
        same: bool = self.value is other.value or repr(self.value) == repr(other.value)
        return same

    def __hash__(self) -> int:
        return hash(repr(self.value))


Argument = Value | Draw | Several | Constant


@dataclass(frozen=True, slots=True)
class Instruction:
    """One call.

    Attributes:
        function: its name in the namespace; `asarray` is the backend's.
        arguments: by position.
        names, named: keywords, and their arguments.
        results: the values that it makes; one of those it got, if it wrote into it.
        is_one: whether it returns one value and not a tuple.
    """

    function: str
    arguments: tuple[Argument, ...]
    names: tuple[str, ...]
    named: tuple[Argument, ...]
    results: tuple[int, ...]
    is_one: bool

    def uses(self) -> Iterator[int]:
        """The numbers of the values among its arguments."""
        stack: list[Argument] = [*self.arguments, *self.named]
        while stack:
            argument = stack.pop()
            if isinstance(argument, Value):
                yield argument.number
            elif isinstance(argument, Several):
                stack.extend(argument.parts)

    def __str__(self) -> str:
        arguments = ", ".join(map(_shown, (*self.arguments, *self.named)))
        return f"{self.function}({arguments})"


def _shown(argument: Argument) -> str:
    if isinstance(argument, Value):
        return f"v{argument.number}"
    if isinstance(argument, Draw):
        return f"draw {argument.number}"
    if isinstance(argument, Several):
        return f"[{', '.join(map(_shown, argument.parts))}]"
    return repr(argument.value)


class Layout(NamedTuple):
    """How a value lies in memory.

    Attributes:
        memory: the block, by the number of the value that it was made for.
        form: shape, element type and strides.
        is_whole: whether the value is all of the block.
    """

    memory: int
    form: tuple[Any, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Recording:
    """One pass.

    Attributes:
        forward, backward: the calls of its halves.
        root: the value that the loss is the sum of.
        gradients: (place of the parameter, value) of each gradient.
        draws: the distribution of each random draw.
        externals: the arrays that were there before, by their numbers.
        layouts: of each value how it lies in memory, where the library tells.
    """

    forward: tuple[Instruction, ...]
    backward: tuple[Instruction, ...]
    root: int
    gradients: tuple[tuple[int, int], ...]
    draws: tuple[Any, ...]
    externals: dict[int, Any]
    layouts: dict[int, Layout]
