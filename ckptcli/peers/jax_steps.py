"""Into the inner programs of an equation: calls, scans, loops and branches, op by op.

Invariant: every op is evaluated as often as the equation says, in its order, on the same operands.

Source: the parameters of `jax.lax.scan`, `while_loop` and `cond` in a jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ckptcli.peers.jax_evaluate import Instead, evaluate, is_checkpoint

CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
"""Primitive -> the parameter that has the program it calls."""


def step_into(equation: Any, operands: Sequence[Any], instead: Instead) -> list[Any] | None:
    """The outputs of an equation that has a program inside, evaluated op by op; None for others.

    Operands are arrays, not tracers, where it branches or loops.
    """
    name, parameters = equation.primitive.name, equation.params
    if is_checkpoint(equation):
        return evaluate(parameters["jaxpr"], (), operands, instead)
    if name in CALLS and CALLS[name] in parameters:
        return _closed(parameters[CALLS[name]], operands, instead)
    if name == "scan":
        return _scan(parameters, operands, instead)
    if name == "while":
        return _while(parameters, operands, instead)
    if name == "cond":
        last = len(parameters["branches"]) - 1
        index = min(max(int(operands[0]), 0), last)
        return _closed(parameters["branches"][index], operands[1:], instead)
    return None


def _closed(program: Any, operands: Sequence[Any], instead: Instead) -> list[Any]:
    inner = getattr(program, "jaxpr", program)
    return evaluate(inner, getattr(program, "consts", ()), operands, instead)


def _scan(parameters: Any, operands: Sequence[Any], instead: Instead) -> list[Any]:
    first, carried = parameters["num_consts"], parameters["num_carry"]
    constants = operands[:first]
    carry, sequences = list(operands[first : first + carried]), operands[first + carried :]
    length = parameters["length"]
    order = range(length - 1, -1, -1) if parameters["reverse"] else range(length)
    rows: dict[int, list[Any]] = {}
    for position in order:
        here = [sequence[position] for sequence in sequences]
        outputs = _closed(parameters["jaxpr"], [*constants, *carry, *here], instead)
        carry, rows[position] = outputs[:carried], outputs[carried:]
    return [*carry, *_stacked([rows[p] for p in range(length)], parameters["jaxpr"], carried)]


def _stacked(rows: Sequence[Sequence[Any]], program: Any, carried: int) -> list[Any]:
    """Each output of all steps as one array; of no step the empty one."""
    if rows:
        return [jax.numpy.stack(column) for column in zip(*rows)]
    return [
        jax.numpy.zeros((0, *variable.aval.shape), variable.aval.dtype)
        for variable in program.jaxpr.outvars[carried:]
    ]


def _while(parameters: Any, operands: Sequence[Any], instead: Instead) -> list[Any]:
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    asked, done = operands[:first], operands[first : first + second]
    carry = list(operands[first + second :])
    while np.asarray(_closed(parameters["cond_jaxpr"], [*asked, *carry], instead)[0]).item():
        carry = _closed(parameters["body_jaxpr"], [*done, *carry], instead)
    return carry
