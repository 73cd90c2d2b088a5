"""JAX on the CPU: `jax.checkpoint` for each region, with JAX's own policies.

`jax` compiles value and gradient into one program, as JAX is meant to be used; it has one time.
`jax-eager` runs op by op, forward and backward apart.

Source: `jax.checkpoint`, `jax.checkpoint_policies`, `jax.ad_checkpoint.checkpoint_name`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np

from ckptcli.checkpoint import policies
from ckptcli.checkpoint.policies import (
    Policy,
    SaveAnyNamesButThese,
    SaveFromBothPolicies,
    SaveOnlyTheseNames,
)
from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.measure.peer_record import PeerMemory
from ckptcli.peers.base import Arrays, Measured, NoPeer, Values, register

_PLAIN = (
    policies.nothing_saveable,
    policies.everything_saveable,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
)


class _JaxEngine:
    """What both have in common."""

    library: ClassVar[str] = "jax"
    extra: ClassVar[str] = "jax"

    @property
    def version(self) -> str:
        import jax

        return f"JAX {jax.__version__}"

    @property
    def threads(self) -> int | None:
        return None

    @contextmanager
    def with_threads(self, count: int | None) -> Iterator[str | None]:
        yield (
            None
            if count is None
            else (
                f"--threads {count} does not reach JAX, which has a thread for each core that the "
                "process may use: start it under `taskset`"
            )
        )


@register
class CompiledJaxEngine(_JaxEngine):
    """One compiled program."""

    name: ClassVar[str] = "jax"
    summary: ClassVar[str] = "JAX, value and gradient compiled into one program"

    def network(self, arrays: Arrays, regions: Sequence[LayerRegion]) -> CompiledJaxNetwork:
        return CompiledJaxNetwork(arrays, regions)


@register
class EagerJaxEngine(_JaxEngine):
    """Op by op."""

    name: ClassVar[str] = "jax-eager"
    summary: ClassVar[str] = "JAX without jit, jax.vjp and its function"

    def network(self, arrays: Arrays, regions: Sequence[LayerRegion]) -> EagerJaxNetwork:
        return EagerJaxNetwork(arrays, regions)


class _JaxNetwork:
    """Weights and input as JAX arrays on the CPU, and the loss as a function of both."""

    def __init__(self, arrays: Arrays, regions: Sequence[LayerRegion]) -> None:
        import jax

        self.loss = loss_function(regions)
        self._is_double = arrays.x.dtype == np.float64
        cpu = jax.devices("cpu")[0]
        with self.precision():
            self.weights = [jax.device_put(weight, cpu) for weight in arrays.weights]
            self.x = jax.device_put(arrays.x, cpu)

    def precision(self) -> AbstractContextManager[Any]:
        """Inside, JAX has float64 where the network needs it; nothing outside is changed."""
        if not self._is_double:
            return nullcontext()
        import jax

        if hasattr(jax, "enable_x64"):
            return jax.enable_x64(True)  # type: ignore[no-any-return]
        from jax.experimental import enable_x64

        return enable_x64()  # type: ignore[no-any-return]

    def check(self, result: Any) -> float | None:
        return float(np.sum(np.asarray(result[1][0]), dtype=np.float64))

    def values(self, result: Any) -> Values:
        loss, gradients = result
        return Values(float(loss), [np.asarray(gradient) for gradient in gradients])

    def _traced(self, temp_bytes: int | None, compile_s: float | None) -> Measured:
        from ckptcli.peers.jax_residuals import residuals

        with self.precision():
            found = residuals(self.loss, self.weights, self.x)
        own_products = 2 * len(self.weights) - 1  # the input needs no gradient
        recomputed = {
            "matmul": found.backward_calls["dot_general"] - own_products,
            "sigmoid": found.backward_calls["logistic"],
        }
        memory = PeerMemory(found.saved_bytes, found.saved_tensors, None, temp_bytes)
        return Measured(memory, {op: n for op, n in recomputed.items() if n}, compile_s)


class CompiledJaxNetwork(_JaxNetwork):
    """One program for both phases: `forward` runs it whole."""

    splits = False

    def __init__(self, arrays: Arrays, regions: Sequence[LayerRegion]) -> None:
        super().__init__(arrays, regions)
        import jax

        start_s = time.perf_counter()
        with self.precision():
            program = jax.jit(jax.value_and_grad(self.loss))
            self._program = program.lower(self.weights, self.x).compile()
        self._compile_s = time.perf_counter() - start_s

    def forward(self) -> Any:
        import jax

        with self.precision():
            return jax.block_until_ready(self._program(self.weights, self.x))

    def backward(self, state: Any) -> Any:
        return state

    def measure(self) -> Measured:
        planned = self._program.memory_analysis()
        temp_bytes = getattr(planned, "temp_size_in_bytes", None)
        return self._traced(temp_bytes, self._compile_s)


class EagerJaxNetwork(_JaxNetwork):
    """Traced and run anew in every pass, as a Python program does without `jit`."""

    splits = True

    def forward(self) -> Any:
        import jax

        with self.precision():
            loss, pull_back = jax.vjp(lambda weights: self.loss(weights, self.x), self.weights)
            return jax.block_until_ready((loss, pull_back))

    def backward(self, state: Any) -> Any:
        import jax

        loss, pull_back = state
        with self.precision():
            (gradients,) = pull_back(jax.numpy.ones_like(loss))
            return jax.block_until_ready((loss, gradients))

    def measure(self) -> Measured:
        return self._traced(None, None)


def loss_function(regions: Sequence[LayerRegion]) -> Callable[[Any, Any], Any]:
    """The loss as a function of weights and input; the values of each layer are named p, s, h.

    Raises:
        NoPeer: a policy that JAX has no counterpart for.
    """
    import jax

    calls = []
    for region in regions:
        call: Any = _layers
        if region.policy is not None:
            call = jax.checkpoint(_layers, policy=_native_policy(region.policy))
        calls.append((region.size, call))

    def loss(weights: Sequence[Any], x: Any) -> Any:
        h, first = x, 0
        for size, call in calls:
            h = call(h, weights[first : first + size])
            first += size
        return h.sum()

    return loss


def _layers(h: Any, weights: Sequence[Any]) -> Any:
    import jax
    from jax.ad_checkpoint import checkpoint_name

    for weight in weights:
        p = checkpoint_name(h @ weight, "p")
        s = checkpoint_name(jax.lax.logistic(p), "s")
        h = checkpoint_name(p * s, "h")
    return h


def _native_policy(policy: Policy) -> Any:
    """JAX's policy of the same name.

    Raises:
        NoPeer: a function of the user's own.
    """
    import jax

    native = jax.checkpoint_policies
    if policy in _PLAIN:
        return getattr(native, policy.__name__)
    if isinstance(policy, SaveOnlyTheseNames):
        return native.save_only_these_names(*policy.names)
    if isinstance(policy, SaveAnyNamesButThese):
        return native.save_any_names_but_these(*policy.names)
    if isinstance(policy, SaveFromBothPolicies):
        pair = (_native_policy(policy.first), _native_policy(policy.second))
        return native.save_from_both_policies(*pair)
    raise NoPeer("the policy is a function of ckpt's values, which JAX has not")
