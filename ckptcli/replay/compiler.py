"""Makes Python source of a recording: two functions, one for each half.

Every value is a local variable and is set to None behind its last use, so that memory is let go of
as on the tape, or sooner: what the program's own variables held is not held here. Where the memory
of an operand is dead, the result is written over it.

Invariant: calls stand in the order of the recording, so that every bit is that of the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.backends.base import Backend
from ckptcli.replay.fixed_views import fixed_views
from ckptcli.replay.in_place import operands_of, overwritten
from ckptcli.replay.instructions import (
    Argument,
    Draw,
    Instruction,
    Recording,
    Several,
    Value,
)

Halves = tuple[Callable[..., list[Any]], Callable[..., list[Any]]]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of the two functions, and the names that stand in it for functions and objects."""

    text: str
    names: dict[str, Any]

    def halves(self) -> Halves:
        """The functions: `forward(keys)` gives what is live at its end, the root first, and
        `backward(live, keys, take)`, which empties that list, the gradients; of a program that
        consumes them none, since `take(place, gradient)` gets each.
        """
        scope = dict(self.names)
        exec(compile(self.text, "<flat program>", "exec"), scope)
        return scope["forward"], scope["backward"]


def source_of(recording: Recording, backend: Backend) -> Source:
    """The source of a recording for a backend."""
    return _Writer(recording, backend).source()


class _Writer:
    """Writes one program."""

    def __init__(self, recording: Recording, backend: Backend) -> None:
        self.recording = recording
        self.backend = backend
        self.names: dict[str, Any] = {
            f"v{number}": array for number, array in recording.externals.items()
        }
        self.functions: dict[str, str] = {}
        self.views = fixed_views(recording)
        self.fixed = {*recording.externals, *(call.results[0] for call in self.views.values())}
        self.overwritten = overwritten(recording)
        self.places: dict[int, list[int]] = {}
        for place, value in recording.gradients if recording.consumes else ():
            self.places.setdefault(value, []).append(place)

    def source(self) -> Source:
        recording = self.recording
        gradients = [value for _, value in recording.gradients]
        made = {n for call in recording.forward for n in call.results} - self.fixed
        needed = {n for call in recording.backward for n in call.uses()}
        live = sorted((needed | {*gradients}) & made - {recording.root})
        crossing = [recording.root, *live]
        kept = set() if recording.consumes else {*gradients}
        self._make_views()
        forward = self._body(recording.forward, set(crossing), 0)
        backward = self._body(recording.backward, kept, len(recording.forward))
        touched = {n for call in recording.backward for n in (*call.uses(), *call.results)}
        at_once = [n for n in gradients if n not in touched or n in self.fixed]
        names = ", ".join(f"v{n}" for n in crossing)
        lines = [
            "def forward(keys):",
            *forward,
            f"    return [{names}]",
            "",
            "def backward(live, keys, take):",
            f"    [{names}] = live",
            "    del live[:]",
            *(line for n in dict.fromkeys(at_once) for line in self._taken(n)),
            *self._dead_at_once(crossing, needed, kept),
            *backward,
            f"    return [{', '.join(f'v{n}' for n in gradients if n in kept)}]",
        ]
        return Source("\n".join(lines) + "\n", self.names)

    def _make_views(self) -> None:
        """Make what is the same in every pass, by the calls that made it."""
        for number, call in self.views.items():
            exec(f"{self._results(call)} = {self._call(call, number)}", self.names)
        self.names.pop("__builtins__", None)

    def _dead_at_once(self, crossing: Sequence[int], needed: set[int], kept: set[int]) -> list[str]:
        dead = [n for n in crossing if n not in needed and n not in kept]
        return [_let_go(dead)] if dead else []

    def _body(self, calls: Sequence[Instruction], kept: set[int], first: int) -> list[str]:
        """The lines of one half, whose first call has this number in the whole pass."""
        last: dict[int, int] = {}
        for index, call in enumerate(calls):
            for number in (*call.uses(), *call.results):
                last[number] = index
        lines = []
        for index, call in enumerate(calls):
            if first + index in self.views:
                continue
            lines.append(f"    {self._results(call)} = {self._call(call, first + index)}")
            touched = dict.fromkeys((*call.uses(), *call.results))
            dead = [
                number
                for number in touched
                if last[number] == index and number not in kept and number not in self.fixed
            ]
            lines += [line for number in dead for line in self._taken(number)]
            if dead:
                lines.append(_let_go(dead))
        return lines or ["    pass"]

    def _taken(self, number: int) -> list[str]:
        """The lines that hand a value over, if it is a gradient of a program that consumes them."""
        return [f"    take({place}, v{number})" for place in self.places.get(number, ())]

    def _results(self, call: Instruction) -> str:
        names = ", ".join(f"v{number}" for number in call.results)
        return names if call.is_one else f"[{names}]"

    def _call(self, call: Instruction, number: int) -> str:
        if call.function not in self.functions:
            name = f"f_{call.function}"
            self.functions[call.function] = name
            self.names[name] = (
                self.backend.asarray
                if call.function == "asarray"
                else getattr(self.backend.namespace, call.function)
            )
        arguments = [self._argument(argument) for argument in call.arguments]
        over = self.overwritten.get(number)
        if over is not None:
            arguments = [*arguments[: len(operands_of(call))], f"v{over}"]
        arguments += [
            f"{name}={self._argument(argument)}" for name, argument in zip(call.names, call.named)
        ]
        return f"{self.functions[call.function]}({', '.join(arguments)})"

    def _argument(self, argument: Argument) -> str:
        if isinstance(argument, Value):
            return f"v{argument.number}"
        if isinstance(argument, Draw):
            return f"keys[{argument.number}]"
        if isinstance(argument, Several):
            parts = "".join(f"{self._argument(part)}, " for part in argument.parts)
            return f"[{parts}]" if argument.is_list else f"({parts})"
        return self._object(argument.value)

    def _object(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name


def _let_go(numbers: Sequence[int]) -> str:
    return "    " + " = ".join(f"v{number}" for number in numbers) + " = None"
