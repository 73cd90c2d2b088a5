"""Where a flat program may write a result over an operand: the operand's memory is dead afterwards.

An op does not know that; the list of calls does. A function's value does not depend on where it is
written, and the memory has the shape, element type and strides that a new array would have, so that
no later kernel sees a difference.

Invariant: what is overwritten is used by nobody afterwards, under no other name, and is no array
that was there before the pass or outlives it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.replay.instructions import (
    Argument,
    Constant,
    Data,
    Instruction,
    Recording,
    Value,
)

_ONE = (
    *("abs", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log", "log1p", "negative"),
    *("reciprocal", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
)
_TWO = ("add", "divide", "hypot", "multiply", "pow", "remainder", "subtract")
_KERNELS = ("gelu_gradient", "relu_gradient", "sigmoid_gradient")
"""Of x and a gradient; they read x after they have begun to write."""

OPERANDS = {**dict.fromkeys(_ONE, 1), **dict.fromkeys((*_TWO, *_KERNELS), 2)}
"""Element-wise functions that take an array to write into behind so many operands."""


def overwritten(recording: Recording) -> dict[int, int]:
    """Number of a call, those of backward behind those of forward -> the operand that its result
    is written over, where one can be.
    """
    calls = (*recording.forward, *recording.backward)
    last_touch = _last_touches(calls, recording)
    found: dict[int, int] = {}
    for index, call in enumerate(calls):
        result = recording.layouts.get(call.results[0])
        for argument in _candidates(call, recording):
            if not isinstance(argument, Value) or result is None:
                continue
            operand = recording.layouts.get(argument.number)
            if (
                operand is not None
                and operand.is_whole
                and result.is_whole
                and operand.memory != result.memory
                and operand.form == result.form
                and last_touch[operand.memory] == index
            ):
                found[index] = argument.number
                break
    return found


def operands_of(call: Instruction) -> tuple[Argument, ...]:
    """The operands of an element-wise call that makes a new array; () of any other."""
    count = OPERANDS.get(call.function)
    if count is None or call.names or not call.is_one:
        return ()
    operands, rest = call.arguments[:count], call.arguments[count:]
    return operands if rest in ((), (Constant(None),)) else ()


def _candidates(call: Instruction, recording: Recording) -> tuple[Argument, ...]:
    """The operands that may be written over: of a kernel of several steps its gradient alone, and
    that only if x lies elsewhere.
    """
    operands = operands_of(call)
    if not operands or call.function not in _KERNELS:
        return operands
    x, gradient = (
        recording.layouts.get(argument.number) if isinstance(argument, Value) else None
        for argument in operands
    )
    return () if x is None or gradient is None or x.memory == gradient.memory else operands[1:]


def _last_touches(calls: Sequence[Instruction], recording: Recording) -> dict[int, int]:
    """Block of memory -> the last call that has to do with a value in it; blocks that are there
    before the pass or after it, or that may be the host's, are never free.
    """
    never = len(calls)
    touches: dict[int, int] = {}
    for index, call in enumerate(calls):
        for number in (*call.uses(), *call.results):
            layout = recording.layouts.get(number)
            if layout is not None:
                touches[layout.memory] = index
    kept = [recording.root, *(value for _, value in recording.gradients), *recording.externals]
    for call in calls:
        if any(isinstance(argument, Data) for argument in call.arguments):
            kept += call.results  # which may share the memory of the host's data
    for number in kept:
        layout = recording.layouts.get(number)
        if layout is not None:
            touches[layout.memory] = never
    return touches
