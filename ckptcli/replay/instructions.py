"""What a recorded pass consists of: calls of the namespace, on values that earlier ones made.

Invariant: an instruction refers to values by number and to everything else by equality, so that two
recordings of one program are equal, whichever arrays they ran on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from ckptcli.backends.random_keys import RandomKey


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


@dataclass(frozen=True, slots=True)
class Data:
    """Data of the host, an array or a list: the same if its elements are.

    Attributes:
        value: the data itself.
        title: what it is, for people.
        elements: the digest of its elements.
    """

    value: Any = field(compare=False)
    title: str
    elements: str


def data_of(value: Any) -> Data:
    """The data; what NumPy does not take for elements is the same only if it is the same object."""
    try:
        array = np.asarray(value)
        elements = sha256(array.tobytes()).hexdigest()
    except (ValueError, TypeError, OverflowError):
        return Data(value, type(value).__name__, str(id(value)))
    return Data(value, f"{array.dtype} {list(array.shape)}", elements)


Argument = Value | Draw | Several | Constant | Data


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
    return argument.title if isinstance(argument, Data) else repr(argument.value)


class Layout(NamedTuple):
    """How a value lies in memory.

    Attributes:
        memory: the block, by the number of the first value in it.
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
        consumes: whether a gradient is handed over as soon as nothing touches it any more.
        draws: the key of each random draw.
        externals: the arrays that were there before and are used, by their numbers.
        layouts: of each value how it lies in memory, where the library tells.
    """

    forward: tuple[Instruction, ...]
    backward: tuple[Instruction, ...]
    root: int
    gradients: tuple[tuple[int, int], ...]
    draws: tuple[RandomKey, ...]
    externals: dict[int, Any]
    layouts: dict[int, Layout]
    consumes: bool
