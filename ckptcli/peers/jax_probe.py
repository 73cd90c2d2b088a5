"""What a checkpoint computes again, beside what the forward pass computed: by probes.

A probe is the identity on a value, whose rule returns, as the gradient by a second argument, the
value itself. Behind an equation inside a checkpoint, what comes out as that gradient is the value
as the backward pass has it, computed again or saved, by JAX's own rules. The value of the forward
pass is one more result of the region. So both are seen, op by op and compiled.

Invariant: a probe changes no value; what it may change is what a compiler makes of the program,
since a value that is a result must be there. So few are put into a program that is compiled.

Source: `jax.custom_vjp`, `jax.checkpoint`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from ckptcli.peers.jax_activity import active_values
from ckptcli.peers.jax_evaluate import (
    bound,
    evaluate,
    has_checkpoint,
    inner_programs,
    is_checkpoint,
)
from ckptcli.peers.jax_steps import CALLS, step_into

LOOKED_INTO = frozenset({"jit", "pjit", "closed_call", "core_call"})
"""Calls whose equations are probed; a function with a rule of its own is one equation."""


def _same(value: Any, copy: Any, flag: Any) -> Any:
    del copy, flag
    return value


def _forward(value: Any, copy: Any, flag: Any) -> tuple[Any, Any]:
    del copy, flag
    return value, value


def _backward(value: Any, gradient: Any) -> tuple[Any, Any, Any]:
    return gradient, value, jax.numpy.ones(())


_probe: Any = jax.custom_vjp(_same)
_probe.defvjp(_forward, _backward)


@dataclass(frozen=True, slots=True)
class Site:
    """An equation inside a checkpoint.

    Attributes:
        number: the how manieth, in the order of the program.
        region: the how manieth checkpoint it is in.
        equation: itself.
        operands: the numbers of the sites in its region that made what it takes.
        steps: how often each scan around it runs, outermost first.
        is_output: whether the region returns what it makes.
        probed: the positions of the outputs that a gradient can flow to, which alone are probed.
    """

    number: int
    region: int
    equation: Any
    operands: Sequence[int]
    steps: Sequence[int]
    is_output: bool
    probed: Sequence[int]

    @property
    def bytes(self) -> int:
        """What its probed outputs take, of all steps."""
        times = math.prod(self.steps)
        avals = [self.equation.outvars[position].aval for position in self.probed]
        return times * sum(math.prod(map(int, a.shape)) * int(a.dtype.itemsize) for a in avals)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a probe saw of one output.

    Attributes:
        site: of the equation.
        output: the how manieth of its outputs.
        forward, again: the value of the forward pass, and that of the backward pass.
    """

    site: Site
    output: int
    forward: Any
    again: Any


class Probes:
    """A program with checkpoints, a `ClosedJaxpr` of so many parameters and of arrays."""

    def __init__(self, traced: Any, parameters: int) -> None:
        self._traced = traced
        active = active_values(traced.jaxpr, parameters)
        self.sites = [
            replace(site, probed=[p for p in site.probed if site.equation.outvars[p] in active])
            for site in _sites(traced.jaxpr)
        ]

    def see(
        self, chosen: Sequence[Site], parameters: Sequence[Any], arrays: Any, compiled: bool
    ) -> tuple[list[Seen], Any, list[Any]]:
        """What the sites compute in both passes, the loss and the gradients beside them.

        An output that no gradient flows through in backward is left out: nothing asks for it.
        """
        copies = {site.number: _copies(site) for site in chosen}
        probed = {site.number: frozenset(site.probed) for site in chosen}

        def loss(parameters: Sequence[Any], copies: Any) -> tuple[Any, Any]:
            walk = _Walk(copies, probed)
            leaves = [*parameters, *jax.tree_util.tree_leaves(arrays)]
            outputs, values = walk.evaluated(self._traced, leaves)
            return outputs[0], values

        call = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
        (value, forward), (gradients, again) = (jax.jit(call) if compiled else call)(
            list(parameters), copies
        )
        by_number = {site.number: site for site in chosen}
        seen = [
            Seen(by_number[number], output, own, other)
            for number, pairs in again.items()
            for output, own, (other, flag) in zip(
                by_number[number].probed, forward.get(number, ()), pairs
            )
            if np.all(np.asarray(flag))
        ]
        return seen, value, gradients


def _copies(site: Site) -> list[tuple[Any, Any]]:
    """Second arguments of the probes of a site, a row for each step of the scans around it."""
    found = []
    for position in site.probed:
        aval = site.equation.outvars[position].aval
        steps = tuple(site.steps)
        found.append((jax.numpy.zeros((*steps, *aval.shape), aval.dtype), jax.numpy.zeros(steps)))
    return found


class _Walk:
    """One evaluation of a program with probes behind the equations that have copies."""

    def __init__(
        self, copies: dict[int, list[tuple[Any, Any]]], probed: Mapping[int, Collection[int]]
    ) -> None:
        self._copies = copies
        self._probed = probed
        self._next = 0

    def evaluated(self, closed: Any, arguments: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
        """The outputs, and the values of the forward pass at the probes by number."""
        values: dict[int, Any] = {}

        def instead(equation: Any, operands: Sequence[Any]) -> list[Any] | None:
            if is_checkpoint(equation):
                return self._region(equation, operands, values)
            if equation.primitive.name in LOOKED_INTO and _has(equation):
                program = equation.params[CALLS[equation.primitive.name]]
                return evaluate(program.jaxpr, program.consts, operands, instead)
            if equation.primitive.name == "scan" and _has(equation):
                return self._scan(equation, operands, values)
            return None

        return evaluate(closed.jaxpr, closed.consts, arguments, instead), values

    def _region(
        self, equation: Any, operands: Sequence[Any], values: dict[int, Any]
    ) -> list[Any] | None:
        start = self._next
        numbers = range(start, start + _count(equation.params["jaxpr"]))
        self._next = numbers.stop
        copies = {n: self._copies[n] for n in numbers if n in self._copies}
        if not copies:
            return None  # bound as it is

        def region(operands: Sequence[Any], copies: Any) -> tuple[list[Any], dict[int, Any]]:
            found: dict[int, Any] = {}
            position = iter(numbers)

            def instead(inner: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
                if _is_entered(inner):
                    return step_into(inner, operands, instead)
                number = next(position)
                outputs = bound(inner, operands)
                if number not in copies:
                    return outputs
                found[number] = []
                probes = iter(copies[number])
                places = self._probed[number]
                return [
                    _seen(value, next(probes), found[number]) if position in places else value
                    for position, value in enumerate(outputs)
                ]

            return evaluate(equation.params["jaxpr"], (), operands, instead), found

        outputs, found = jax.checkpoint(
            region, policy=equation.params["policy"], prevent_cse=_prevents(equation)
        )(operands, copies)
        values.update(found)
        return list(outputs)

    def _scan(
        self, equation: Any, operands: Sequence[Any], values: dict[int, Any]
    ) -> list[Any] | None:
        given = equation.params
        fixed, carried = given["num_consts"], given["num_carry"]
        start, count = self._next, _count_all(given["jaxpr"].jaxpr)
        numbers = range(start, start + count)
        self._next = numbers.stop
        copies = {n: self._copies[n] for n in numbers if n in self._copies}
        if not copies:
            return None

        def body(carry: Any, rows: Any) -> tuple[Any, Any]:
            here, inner_copies = rows
            walk = _Walk(inner_copies, self._probed)
            walk._next = start
            arguments = [*operands[:fixed], *carry, *here]
            outputs, found = walk.evaluated(given["jaxpr"], arguments)
            return outputs[:carried], (outputs[carried:], found)

        carry, (stacked, found) = jax.lax.scan(
            body,
            list(operands[fixed : fixed + carried]),
            (list(operands[fixed + carried :]), copies),
            length=given["length"],
            reverse=given["reverse"],
            unroll=given.get("unroll", 1),
        )
        values.update(found)
        return [*carry, *stacked]


def _seen(value: Any, copies: tuple[Any, Any], found: list[Any]) -> Any:
    """The value behind a probe; that of the forward pass is added to `found`."""
    found.append(value)
    return _probe(value, *copies)


def _prevents(equation: Any) -> bool:
    """Whether the checkpoint keeps the compiler from merging; of each operand, of any."""
    given = equation.params.get("prevent_cse", True)
    return bool(any(given) if isinstance(given, tuple) else given)


def _is_entered(equation: Any) -> bool:
    return equation.primitive.name in LOOKED_INTO or is_checkpoint(equation)


def _has(equation: Any) -> bool:
    return any(has_checkpoint(program) for _, program in inner_programs(equation))


def _leaves(program: Any) -> Iterator[Any]:
    """The equations of a region, in order, those of its calls and inner checkpoints for them."""
    for equation in program.eqns:
        if _is_entered(equation):
            for _, inner in inner_programs(equation):
                yield from _leaves(inner)
        else:
            yield equation


def _count(program: Any) -> int:
    return sum(1 for _ in _leaves(program))


def _count_all(program: Any) -> int:
    """Sites of a program outside of any region."""
    return sum(1 for _ in _sites(program))


def _sites(program: Any, steps: Collection[int] = (), first: int = 0) -> Iterator[Site]:
    """Every equation inside a checkpoint, in order; branches and loops are not looked into."""
    number = first
    for region, (equation, around) in enumerate(_regions(program, tuple(steps))):
        for site in _of_region(equation.params["jaxpr"], number, region, around):
            yield site
            number += 1


def _regions(program: Any, steps: tuple[int, ...]) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """The outermost checkpoints, each with how often the scans around it run."""
    for equation in program.eqns:
        name = equation.primitive.name
        if is_checkpoint(equation):
            yield equation, steps
        elif name in LOOKED_INTO:
            yield from _regions(equation.params[CALLS[name]].jaxpr, steps)
        elif name == "scan":
            inner = equation.params["jaxpr"].jaxpr
            yield from _regions(inner, (*steps, int(equation.params["length"])))


def _of_region(program: Any, first: int, region: int, steps: tuple[int, ...]) -> Iterator[Site]:
    """The sites of a region; variables of calls inside are those that they are called with."""
    made: dict[Any, int] = {}
    outputs: set[Any] = set()
    found: list[tuple[Any, list[int]]] = []

    def walk(program: Any) -> None:
        for equation in program.eqns:
            if _is_entered(equation):
                ((_, inner),) = list(inner_programs(equation))[:1]
                for own, given in zip(inner.invars, equation.invars):
                    if not hasattr(given, "val") and given in made:
                        made[own] = made[given]
                walk(inner)
                for own, given in zip(equation.outvars, inner.outvars):
                    if not hasattr(given, "val") and given in made:
                        made[own] = made[given]
                continue
            takes = [made[a] for a in equation.invars if not hasattr(a, "val") and a in made]
            for variable in equation.outvars:
                made[variable] = first + len(found)
            found.append((equation, list(dict.fromkeys(takes))))

    walk(program)
    outputs = {made[v] for v in program.outvars if not hasattr(v, "val") and v in made}
    for position, (equation, operands) in enumerate(found):
        number = first + position
        every = range(len(equation.outvars))
        yield Site(number, region, equation, operands, steps, number in outputs, every)
