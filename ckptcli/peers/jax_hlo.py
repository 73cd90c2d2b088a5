"""What a program of XLA's computes again, counted in its text: before it is compiled, and after.

JAX writes into the name of every instruction from which primitive it comes, and whether that is the
recomputation of a checkpoint. XLA keeps the names. What costs is counted, under the primitive's
name: products, convolutions, calls of libraries, transcendental functions. Element-wise arithmetic
is not: XLA repeats it in as many loops as it likes.

Invariant: a computation stands in the text before what calls it, so that one walk counts all calls.

Source: `jax.stages.Lowered.as_text`, `jax.stages.Compiled.as_text`; the text form of HLO, XLA's
operation semantics.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

RECOMPUTED = "rematted_computation"
"""What JAX calls the part of a name that a checkpoint's recomputation puts there."""

_COSTLY = frozenset(
    {
        *("dot", "convolution", "custom-call", "fft", "sort", "cholesky", "triangular-solve"),
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "power"),
        *("tanh", "tan", "sine", "cosine", "atan2", "erf"),
    }
)
_CALLING = frozenset({"call", "while", "conditional", "async-start"})

_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .*)?\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) ([a-z][a-z0-9\-]*)\(")
_NAME = re.compile(r'op_name="([^"]*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CALLED = re.compile(r"(?:to_apply|calls|body|condition|\w+_computation)=%?([\w.\-]+)")
_CONDITION = re.compile(r"condition=%?([\w.\-]+)")
_LIMIT = re.compile(r" = [su]\d+\[\] constant\((\d+)\)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")


@dataclass(slots=True)
class Counts:
    """Of a computation and all that it calls: primitive -> how often."""

    every: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    limits: list[int] = field(default_factory=list)

    def add(self, other: Counts, is_again: bool, turns: int) -> None:
        """What a call adds, so many times; all of it is computed again where the call is."""
        again = other.every if is_again else other.again
        self.every.update({name: count * turns for name, count in other.every.items()})
        self.again.update({name: count * turns for name, count in again.items()})


def recomputed_by_op(text: str) -> dict[str, int]:
    """Of the costly instructions of a whole program, those that a checkpoint computes again, by
    primitive. The body of a loop counts once a turn: `lax.scan` counts up to a constant, which
    stands in the loop's condition; a loop that does otherwise counts once.
    """
    return dict(sorted(_entry(text).again.items()))


def _entry(text: str) -> Counts:
    """The counts of the last computation, which calls the others."""
    known: dict[str, Counts] = {}
    here = Counts()
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            here = known[head[1]] = Counts()
            continue
        here.limits += map(int, _LIMIT.findall(line))
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            _count(instruction[1], line, here, known)
    return here


def _count(opcode: str, line: str, here: Counts, known: dict[str, Counts]) -> None:
    name = _NAME.search(line)
    is_again = name is not None and RECOMPUTED in name[1]
    if opcode in _COSTLY:
        primitive = _primitive(opcode, line, name)
        here.every[primitive] += 1
        if is_again:
            here.again[primitive] += 1
    turns = _turns(line, known) if opcode == "while" else 1
    for called in _called(line):
        # A fusion's instructions have names of their own, of the places where each comes from.
        here.add(known.get(called, Counts()), is_again and opcode in _CALLING, turns)


def _turns(line: str, known: dict[str, Counts]) -> int:
    """How often a loop runs that counts up to the one constant of its condition; else 1."""
    condition = _CONDITION.search(line)
    limits = [] if condition is None else known.get(condition[1], Counts()).limits
    return limits[0] if len(limits) == 1 else 1


def _primitive(opcode: str, line: str, name: re.Match[str] | None) -> str:
    """What JAX calls it; without a name the opcode, or the library's function."""
    if name is not None:
        return name[1].rpartition("/")[2]
    target = _TARGET.search(line)
    return opcode if target is None else target[1]


def _called(line: str) -> Iterator[str]:
    yield from _CALLED.findall(line)
    for branches in _BRANCHES.findall(line):
        yield from (branch.strip().lstrip("%") for branch in branches.split(","))
