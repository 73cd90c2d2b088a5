"""A program of JAX's, equation by equation, and the same with its checkpoints off.

Whoever evaluates may take the place of an equation; all others are bound as they are, under the
source line and the context that they were written in. Under a trace that makes a program anew,
outside of one it is the program op by op.

Invariant: custom derivative rules stay; an equation that nobody takes the place of is bound with
the operands and parameters that it has.

Source: JAX, "Writing custom Jaxpr interpreters"; `jax.core.eval_jaxpr`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import jax

CHECKPOINT = ("remat2", "checkpoint", "remat")
"""What the primitive of `jax.checkpoint` is called, in this version of JAX and in others."""

Instead: TypeAlias = Callable[[Any, Sequence[Any]], Sequence[Any] | None]
"""From an equation and its operands to its outputs; None binds it."""


def evaluate(
    program: Any, constants: Sequence[Any], arguments: Sequence[Any], instead: Instead
) -> list[Any]:
    """The outputs of a `Jaxpr`; `instead` is asked for each equation."""
    values: dict[Any, Any] = dict(zip(program.constvars, constants))
    values |= zip(program.invars, arguments)

    def read(atom: Any) -> Any:
        return atom.val if is_literal(atom) else values[atom]

    last_uses = _last_uses(program)
    for position, equation in enumerate(program.eqns):
        operands = [read(atom) for atom in equation.invars]
        with as_written(equation):
            outputs = instead(equation, operands)
            if outputs is None:
                outputs = bound(equation, operands)
        values |= zip(equation.outvars, outputs)
        for variable in last_uses.get(position, ()):
            del values[variable]
    return [read(atom) for atom in program.outvars]


def is_literal(atom: Any) -> bool:
    """Whether an operand is a value that stands in the program itself."""
    return hasattr(atom, "val")


def bound(equation: Any, operands: Sequence[Any], **changed: Any) -> list[Any]:
    """The outputs of an equation, with some of its parameters changed."""
    primitive = equation.primitive
    given = primitive.get_bind_params({**equation.params, **changed})
    functions, parameters = given if isinstance(given, tuple) else ((), given)
    outputs = primitive.bind(*functions, *operands, **parameters)
    return list(outputs) if primitive.multiple_results else [outputs]


def as_written(equation: Any) -> AbstractContextManager[Any]:
    """Inside, what is bound has the source line, the names and the context of the equation."""
    stack = _Stack()
    try:
        from jax.extend import source_info_util

        names = source_info_util.current_name_stack() + equation.source_info.name_stack
        stack.enter(source_info_util.user_context(equation.source_info.traceback, name_stack=names))
    except (ImportError, AttributeError, TypeError):  # another version: figures stay, lines do not
        pass
    context = getattr(equation, "ctx", None)
    stack.enter(nullcontext() if context is None else context.manager)
    return stack


class _Stack:
    """Contexts that are entered together."""

    def __init__(self) -> None:
        self._contexts: list[AbstractContextManager[Any]] = []

    def enter(self, context: AbstractContextManager[Any]) -> None:
        self._contexts.append(context)

    def __enter__(self) -> None:
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        for context in reversed(self._contexts):
            context.__exit__(*error)
        return None


def is_checkpoint(equation: Any) -> bool:
    """Whether the equation is a call under `jax.checkpoint`."""
    return equation.primitive.name in CHECKPOINT and "policy" in equation.params


def has_checkpoint(program: Any) -> bool:
    """Whether one is anywhere in the program."""
    return any(is_checkpoint(equation) for equation in equations(program))


def equations(program: Any) -> Iterator[Any]:
    """Every equation, those of inner programs included."""
    waiting, seen = [program], set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            waiting.extend(inner for _, inner in inner_programs(equation))


def inner_programs(equation: Any) -> Iterator[tuple[str, Any]]:
    """The programs among the parameters of an equation, with the names of these."""
    for name, parameter in equation.params.items():
        for item in parameter if isinstance(parameter, tuple | list) else [parameter]:
            program = getattr(item, "jaxpr", item)
            if hasattr(program, "eqns"):
                yield name, program


def without_checkpoints(equation: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
    """What an equation computes with every checkpoint in it off; an `Instead`."""
    if is_checkpoint(equation):
        return evaluate(equation.params["jaxpr"], (), operands, without_checkpoints)

    def flat(closed: Any, arguments: Sequence[Any]) -> list[Any]:
        return evaluate(closed.jaxpr, closed.consts, arguments, without_checkpoints)

    return bound_with(equation, operands, has_checkpoint, flat)


def bound_with(
    equation: Any,
    operands: Sequence[Any],
    is_meant: Callable[[Any], bool],
    flat: Callable[[Any, Sequence[Any]], list[Any]],
) -> list[Any] | None:
    """The outputs of an equation whose inner programs are what `flat` makes of them, where one of
    them is meant; None where none is. `flat` gets a closed program and its arguments.
    """
    changed = {}
    for name, parameter in equation.params.items():
        items = parameter if isinstance(parameter, tuple) else (parameter,)
        if any(_is_closed(item) and is_meant(item.jaxpr) for item in items):
            new = tuple(_rewritten(item, flat) if _is_closed(item) else item for item in items)
            changed[name] = new if isinstance(parameter, tuple) else new[0]
    return bound(equation, operands, **changed) if changed else None


def _is_closed(item: Any) -> bool:
    return hasattr(item, "jaxpr") and hasattr(item, "consts") and hasattr(item.jaxpr, "eqns")


def _rewritten(closed: Any, flat: Callable[[Any, Sequence[Any]], list[Any]]) -> Any:
    """A closed program of the same arguments and results."""
    return jax.make_jaxpr(lambda *arguments: flat(closed, arguments))(
        *map(shape_of, closed.jaxpr.invars)
    )


def shape_of(variable: Any) -> Any:
    """Shape, dtype and weakness of a variable, to trace with."""
    aval = variable.aval
    return jax.ShapeDtypeStruct(
        aval.shape, aval.dtype, weak_type=bool(getattr(aval, "weak_type", False))
    )


def _last_uses(program: Any) -> dict[int, list[Any]]:
    """Position of an equation -> the variables that nothing after it reads."""
    last: dict[Any, int] = {}
    for position, equation in enumerate(program.eqns):
        for atom in (*equation.invars, *equation.outvars):
            if not is_literal(atom):
                last[atom] = position
    for atom in program.outvars:
        if not is_literal(atom):
            last.pop(atom, None)
    found: dict[int, list[Any]] = {}
    for variable, position in last.items():
        found.setdefault(position, []).append(variable)
    return found
