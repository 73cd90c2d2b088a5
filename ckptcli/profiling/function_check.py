"""A JAX function of the user's own checked: gradients, finite differences, recomputed values.

Invariant: a strategy passes only if its gradients are those of `none`, compiled and op by op, every
value that could be seen came back bit for bit op by op, but for the sign of a zero, and every
usable difference agrees.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ckptcli.measure.check import Check, WrongGradient
from ckptcli.measure.difference import DirectionalDifference
from ckptcli.peers.agreement import distance, wrong_gradient
from ckptcli.peers.base import NoPeer, Values
from ckptcli.peers.function_strategies import NONE, OWN, REMAT, FunctionStrategy
from ckptcli.peers.jax_function import UserFunction, load_function
from ckptcli.peers.jax_function_rows import CompiledFunction, FunctionRows, real_dtype
from ckptcli.peers.jax_recheck import Recheck
from ckptcli.peers.jax_trial import blamed, tried
from ckptcli.profiling.function_profile import Expected, check_same_again, expected_of, op_by_op
from ckptcli.profiling.parent import child_command, ending_pipe

ENGINE = "jax"
CHILD = "ckptcli.peers.jax_float64"


class CheckedFunction:
    """A function that is loaded and tried, and its checks.

    Raises:
        UsageError: no function with parameters.
        ProgramError: the function fails, has no gradient, or is another each time.
    """

    def __init__(self, text: str, seed: int) -> None:
        self.user = load_function(text)
        trial = tried(self.user)
        self.notes = trial.notes
        self._seed = seed
        self._rows = FunctionRows(self.user, trial.program)

    @property
    def title(self) -> str:
        """The function in words."""
        return self.user.title

    def default(self) -> list[FunctionStrategy]:
        """The function as it is, or with one checkpoint around it if it has none."""
        name = OWN if self._rows.has_checkpoints else REMAT
        return [FunctionStrategy(name, name)]

    def checks(self, strategies: Sequence[FunctionStrategy]) -> Iterator[Check]:
        """Each strategy checked.

        Raises:
            UnknownNameError, UsageError: a policy or a place that is not there.
            ProgramError: the function fails under one.
        """
        plain = self._rows.program(FunctionStrategy(NONE, NONE))
        text, user = self.user.text, self.user
        with blamed(text):
            network = CompiledFunction(plain)
            values = network.values(network.forward())
        check_same_again(network, values, self._rows)
        again = op_by_op(plain, text)
        dtype = real_dtype(user.parameter_leaves())
        expected = expected_of(values, again, self._rows.tolerance, dtype)
        directions = _directions(user, strategies, self._seed)
        for strategy in strategies:
            try:
                found = self._checked(strategy, expected)
            except NoPeer as reason:
                yield Check(strategy.name, ENGINE, str(reason))
                continue
            told = directions.get(strategy.name, directions["reason"])
            yield (
                replace(found, why_no_differences=told)
                if isinstance(told, str)
                else replace(found, differences=told)
            )

    def _checked(self, strategy: FunctionStrategy, expected: Expected) -> Check:
        program, text = self._rows.program(strategy), self.user.text
        names = self.user.parameter_names()
        with blamed(text):
            network = CompiledFunction(program)
            result = network.forward()
            values = network.values(result)
            recheck = Recheck(self._rows.program_of(program.loss), program.parameters, program.x)
            compared, wrong = recheck.op_by_op()
        known, alone = expected.beside(values), expected.beside(op_by_op(program, text))
        compiled = None
        if not known.agrees and recheck.sites:
            with blamed(text):
                compiled = recheck.compiled(result[1])
        return Check(
            strategy.name,
            ENGINE,
            gradients=len(names),
            agreement=known,
            plain_agreement=known,
            op_by_op=alone,
            gradients_apart=tuple(_wrong(names, expected, values)),
            not_compared=[names[p] for p in range(len(names)) if p not in expected.settled],
            not_finite=[n for n, g in zip(names, values.gradients) if not np.isfinite(g).all()],
            sites=len(recheck.sites),
            compared=compared,
            same_bits=compared - len(wrong),
            wrong_values=wrong,
            compiled=compiled,
        )


def _wrong(names: Sequence[str], expected: Expected, found: Values) -> Iterator[WrongGradient]:
    for position in expected.settled:
        own, other = expected.values.gradients[position], found.gradients[position]
        if distance(own, other)[0] > expected.tolerance:
            yield wrong_gradient(names[position], own, other)


def _directions(
    user: UserFunction, strategies: Sequence[FunctionStrategy], seed: int
) -> dict[str, Any]:
    """The directions of each strategy, by name, from a process in float64; `reason` is there for
    those that have none.
    """
    asked = [strategy.name for strategy in strategies if strategy.reason is None]
    told = json.dumps({"text": user.text, "strategies": asked, "seed": seed})
    with ending_pipe() as pipe:
        done = subprocess.run(
            child_command([], pipe, CHILD),
            input=told,
            capture_output=True,
            text=True,
            pass_fds=() if pipe is None else (pipe,),
            start_new_session=True,
        )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        last = lines[-1][:200] if lines else "it said nothing"
        return {"reason": f"the process in float64 ended with {done.returncode}: {last}"}
    directions: dict[str, Any] = {
        name: tuple(DirectionalDifference(**each) for each in every)
        for name, every in found.get("directions", {}).items()
    }
    return {"reason": f"in float64: {found.get('reason', 'nothing was asked')}", **directions}
