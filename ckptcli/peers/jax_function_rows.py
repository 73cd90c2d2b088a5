"""A JAX function of the user's own under a strategy: a program for JAX's engines, and its network.

Checkpoints are off in the program that the function was traced to, so that it does not matter where
they were put: in the file, in a library, inside a scan.

Invariant: with every strategy the same parameters and arrays go in; `own` is the function itself.

Source: `jax.checkpoint`, `jax.extend.core.jaxpr_as_fun`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from ckptcli.peers.base import NoPeer, Packed, PeerNetwork, Values
from ckptcli.peers.function_strategies import NONE, OWN, FunctionStrategy, Place
from ckptcli.peers.jax_engine import CompiledJaxNetwork, EagerJaxNetwork
from ckptcli.peers.jax_evaluate import (
    equations,
    evaluate,
    has_checkpoint,
    without_checkpoints,
)
from ckptcli.peers.jax_function import UserFunction
from ckptcli.peers.jax_lines import Calls, evaluate_calls, without_checkpoints_apart
from ckptcli.peers.jax_operations import executed
from ckptcli.peers.jax_policies import policy_of
from ckptcli.peers.jax_trial import traced

Loss: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Any]
"""From parameters and other arrays to a scalar."""

ROUNDINGS = {"float64": 1e-12, "float32": 1e-5}
"""What two orders of the same sums may differ by, as a share, by the lowest precision in it."""

HALF_ROUNDINGS = 16.0
"""For what is stored in fewer bits: so many of its units in the last place."""


class FunctionProgram:
    """A function under one strategy, as JAX's engines run it; see `JaxProgram`.

    `base` is the same without checkpoints, by which what is computed again is counted.
    """

    def __init__(self, user: UserFunction, loss: Loss, tolerance: float, base: Loss) -> None:
        self.parameters: Sequence[Any] = user.parameter_leaves()
        self.x: Any = user.other_arrays()
        self.tolerance = tolerance
        self.loss = loss
        self._base = base

    def recomputed(self, backward_calls: Counter[str]) -> dict[str, int]:
        """What forward and backward together compute more often than without checkpoints."""
        del backward_calls
        own = gradient_calls(self.loss, self.parameters, self.x)
        other = gradient_calls(self._base, self.parameters, self.x)
        return {name: count - other[name] for name, count in own.items() if count > other[name]}


def gradient_calls(loss: Loss, parameters: Sequence[Any], arrays: Sequence[Any]) -> Counter[str]:
    """How often each primitive that computes something is evaluated in loss and gradient."""
    found: Counter[str] = Counter()
    for equation, times in executed(gradient_program(loss, parameters, arrays).jaxpr):
        found[equation.primitive.name] += times
    return found


def gradient_program(loss: Loss, parameters: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """Loss and gradient by the parameters as one `ClosedJaxpr`."""
    return jax.make_jaxpr(jax.value_and_grad(loss))(parameters, arrays)


class FunctionRows:
    """The programs of a function by strategy; `program` is its own, a `ClosedJaxpr`."""

    def __init__(self, user: UserFunction, program: Any) -> None:
        self.user = user
        self.has_checkpoints = has_checkpoint(program.jaxpr)
        self._traced = program
        self.tolerance = tolerance_of(program)
        self._calls: dict[Place, tuple[int, Any]] = {}

    def without(self, parameters: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The loss with every checkpoint off."""
        return evaluate(
            self._traced.jaxpr,
            self._traced.consts,
            [*parameters, *arrays],
            without_checkpoints,
        )[0]

    def loss(self, strategy: FunctionStrategy) -> Loss:
        """The loss under a strategy.

        Raises:
            NoPeer: it is nothing here, or nothing else than `none`.
            UnknownNameError, UsageError: a policy or a place that is not there.
        """
        if strategy.reason is not None:
            raise NoPeer(strategy.reason)
        if strategy.keyword == NONE:
            return self.without if self.has_checkpoints else self.user.scalar
        if strategy.keyword == OWN:
            if not self.has_checkpoints:
                raise NoPeer("the function has no checkpoint of its own: it is `none`")
            return self.user.scalar
        return self._checkpointed(strategy)

    def _checkpointed(self, strategy: FunctionStrategy) -> Loss:
        policy = policy_of(strategy)
        if strategy.place is None:
            return jax.checkpoint(self.without, policy=policy)  # type: ignore[no-any-return]
        closed = self._marked(strategy.place)

        def loss(parameters: Sequence[Any], arrays: Sequence[Any]) -> Any:
            return evaluate_calls(closed, [*parameters, *arrays], policy)[0]

        return loss

    def calls(self, place: Place) -> int:
        """How often the function at a place is called."""
        self._marked(place)
        return self._calls[place][0]

    def _marked(self, place: Place) -> Any:
        """The program without checkpoints, the calls of the function at a place marked in it.

        Raises:
            UsageError: it is never called.
        """
        if place not in self._calls:
            calls = Calls(place)
            program = traced(self.user, watching=calls.marked())
            calls.check_found()
            closed = jax.make_jaxpr(
                lambda *arguments: without_checkpoints_apart(program, arguments)
            )(*self.user.parameter_leaves(), *self.user.other_arrays())
            self._calls[place] = calls.count, closed
        return self._calls[place][1]

    def program_of(self, loss: Loss) -> Any:
        """A loss as a `ClosedJaxpr`."""
        return jax.make_jaxpr(loss)(self.user.parameter_leaves(), self.user.other_arrays())

    def program(self, strategy: FunctionStrategy) -> FunctionProgram:
        """The strategy as a program for JAX's engines.

        Raises:
            NoPeer, UnknownNameError, UsageError: as `loss`.
        """
        return FunctionProgram(self.user, self.loss(strategy), self.tolerance, self.without)


def tolerance_of(traced: Any) -> float:
    """How far sums in another order may lie apart, by the lowest precision in the program."""
    variables = [v for equation in equations(traced.jaxpr) for v in equation.outvars]
    dtypes = {v.aval.dtype for v in (*traced.jaxpr.invars, *variables) if hasattr(v.aval, "dtype")}
    kinds = [d for d in dtypes if jax.dtypes.issubdtype(d, jax.numpy.floating)]
    lowest = max(kinds, key=lambda dtype: float(jax.numpy.finfo(dtype).eps))
    known = ROUNDINGS.get(str(lowest))
    return HALF_ROUNDINGS * float(jax.numpy.finfo(lowest).eps) if known is None else known


class _OwnValues:
    """Gradients of any floating-point dtype as NumPy compares them."""

    def values(self, result: Any) -> Values:
        """Real arrays, float64 where all are, else float32."""
        loss, gradients = result
        return Values(float(loss), real_arrays(gradients))

    def check(self, result: Any) -> float | None:
        """The sum of the first parameter's gradient."""
        return float(np.sum(real_arrays(result[1][:1])[0], dtype=np.float64))


def real_arrays(gradients: Sequence[Any]) -> list[Any]:
    """On the host, complex numbers as pairs; float64 where all have as many bits, else float32."""
    dtype = np.dtype(real_dtype(gradients))
    found = []
    for gradient in gradients:
        array = np.asarray(gradient)
        if jax.dtypes.issubdtype(array.dtype, jax.numpy.complexfloating):
            array = np.stack([array.real, array.imag], axis=-1)
        found.append(array.astype(dtype))
    return found


def real_dtype(arrays: Sequence[Any]) -> str:
    """`float64` where all are of that precision, else `float32`."""
    doubles = {"float64", "complex128"}
    return "float64" if {str(array.dtype) for array in arrays} <= doubles else "float32"


class CompiledFunction(_OwnValues, CompiledJaxNetwork):
    """Loss and gradient compiled into one program."""

    def packed(self) -> Packed | None:
        if any(jax.dtypes.issubdtype(a.dtype, jax.dtypes.extended) for a in self.x):
            raise NoPeer("a key of jax.random among its arguments is no array of the host")
        return super().packed()


class EagerFunction(_OwnValues, EagerJaxNetwork):
    """Op by op."""


NETWORKS: dict[str, type[CompiledFunction] | type[EagerFunction]] = {
    "jax": CompiledFunction,
    "jax-eager": EagerFunction,
}
"""By the name of the engine."""


def network_of(engine: str, program: FunctionProgram) -> PeerNetwork:
    """The program in one of JAX's engines."""
    return NETWORKS[engine](program)
