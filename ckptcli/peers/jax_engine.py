"""JAX on the CPU: a program of JAX's compiled, and op by op.

`jax` compiles value and gradient into one program, as JAX is meant to be used; it has one time.
`jax-eager` runs op by op, forward and backward apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.measure.compiled import Compiled, Plan
from ckptcli.measure.memory import held_alone
from ckptcli.peers.base import Again, Measured, Packed, Values, program_of, register
from ckptcli.peers.jax_compiled import (
    compiled_facts,
    compiled_here,
    compiled_plan,
    packed_program,
)
from ckptcli.workloads.base import Workload


class JaxProgram(Protocol):
    """A workload as JAX computes it, under one strategy.

    Attributes:
        parameters: arrays on the host, all of one dtype; what the gradient is taken by.
        x: the other arrays on the host, or None.
        tolerance: see `PeerNetwork`.
    """

    parameters: Sequence[Any]
    x: Any
    tolerance: float

    def loss(self, parameters: Sequence[Any], x: Any) -> Any:
        """The loss, a JAX scalar."""

    def recomputed(self, backward_calls: Counter[str]) -> dict[str, int]:
        """Op -> how often backward computes it again, from its primitives by JAX's names."""


class _JaxEngine:
    """What both have in common."""

    library: ClassVar[str] = "jax"
    extra: ClassVar[str] = "jax"
    programs: ClassVar[str] = "jax"
    waits_for_threads: ClassVar[bool] = False
    copies_arrays: ClassVar[bool] = True

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

    def is_out_of_memory(self, error: BaseException) -> bool:
        """XLA has one class for all its errors; the text begins with the kind."""
        is_exhausted = isinstance(error, RuntimeError) and str(error).startswith(
            "RESOURCE_EXHAUSTED"
        )
        return is_exhausted or isinstance(error, MemoryError)


@register
class CompiledJaxEngine(_JaxEngine):
    """One compiled program."""

    name: ClassVar[str] = "jax"
    summary: ClassVar[str] = "JAX, value and gradient compiled into one program"

    def network(self, workload: Workload, regions: Sequence[LayerRegion]) -> CompiledJaxNetwork:
        return CompiledJaxNetwork(program_of(self.programs, workload, regions))


@register
class EagerJaxEngine(_JaxEngine):
    """Op by op."""

    name: ClassVar[str] = "jax-eager"
    summary: ClassVar[str] = "JAX without jit, jax.vjp and its function"

    def network(self, workload: Workload, regions: Sequence[LayerRegion]) -> EagerJaxNetwork:
        return EagerJaxNetwork(program_of(self.programs, workload, regions))


class _JaxNetwork:
    """Parameters and input as JAX arrays on the CPU, and the loss as a function of both."""

    def __init__(self, program: JaxProgram) -> None:
        import jax

        self.program = program
        self.loss = program.loss
        self.tolerance = program.tolerance
        self._is_double = program.parameters[0].dtype == np.float64
        cpu = jax.devices("cpu")[0]
        with self.precision():
            self.parameters = [jax.device_put(array, cpu) for array in program.parameters]
            self.x = jax.device_put(program.x, cpu)

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

    def program_parameters(self, parameters: Sequence[Any]) -> list[Any]:
        """The workload's parameters as the program takes them."""
        stacked = getattr(self.program, "stacked", None)
        return list(parameters if stacked is None else stacked(parameters))

    def loss_at(self, parameters: Sequence[Any]) -> float:
        with self.precision():
            return float(self.loss(self.program_parameters(parameters), self.x))

    def recomputed_values(self) -> Sequence[Again]:
        return ()

    def packed(self) -> Packed | None:
        return None

    def _measured(self, compiled: Compiled | None, compile_s: float | None) -> Measured:
        from ckptcli.peers.jax_residuals import residuals

        with self.precision():
            counts = residuals(self.loss, self.parameters, self.x)
        recomputed = self.program.recomputed(counts.backward_calls)
        plan = None if compiled is None else compiled.plan
        memory = held_alone(
            counts.saved_bytes,
            counts.saved_tensors,
            None if plan is None else plan.temp_bytes,
            None if compiled is None else compiled.peak_bytes,
        )
        by_op = {op: n for op, n in recomputed.items() if n}
        return Measured(memory, by_op, compile_s, compiled)


class CompiledJaxNetwork(_JaxNetwork):
    """One program for both phases: `forward` runs it whole."""

    splits = False
    untold = "XLA makes one program of both passes, of which loss and gradients alone come out"

    def __init__(self, program: JaxProgram) -> None:
        super().__init__(program)
        import jax

        start_s = time.perf_counter()
        with self.precision():
            self._lowered = jax.jit(jax.value_and_grad(self.loss)).lower(self.parameters, self.x)
            lowered_s = time.perf_counter()
            self._compiled = self._lowered.compile()
        self._lower_s = lowered_s - start_s
        self._build_s = time.perf_counter() - lowered_s

    @property
    def plan(self) -> Plan | None:
        """What the compiler planned; None where it does not tell."""
        return compiled_plan(self._compiled)

    def forward(self) -> Any:
        import jax

        with self.precision():
            return jax.block_until_ready(self._compiled(self.parameters, self.x))

    def backward(self, state: Any) -> Any:
        return state

    def loss_at(self, parameters: Sequence[Any]) -> float:
        """By the compiled program itself: nothing is compiled for it."""
        with self.precision():
            return float(self._compiled(self.program_parameters(parameters), self.x)[0])

    def measure(self) -> Measured:
        start_s = time.perf_counter()
        self.forward()
        first_call_s = time.perf_counter() - start_s
        with self.precision():
            compiled = replace(
                compiled_facts(self._lowered, self._compiled),
                lower_s=self._lower_s,
                build_s=self._build_s,
                first_call_s=first_call_s,
            )
        return self._measured(compiled, self._lower_s + self._build_s)

    def packed(self) -> Packed | None:
        with self.precision():
            program = compiled_here(self._lowered, self._compiled)
            return packed_program(program, (self.parameters, self.x))


class EagerJaxNetwork(_JaxNetwork):
    """Traced and run anew in every pass, as a Python program does without `jit`."""

    splits = True
    untold = "JAX computes again inside the function that jax.vjp returns, which tells nothing"

    def forward(self) -> Any:
        import jax

        with self.precision():
            loss, pull_back = jax.vjp(
                lambda parameters: self.loss(parameters, self.x), self.parameters
            )
            return jax.block_until_ready((loss, pull_back))

    def backward(self, state: Any) -> Any:
        import jax

        loss, pull_back = state
        with self.precision():
            (gradients,) = pull_back(jax.numpy.ones_like(loss))
            return jax.block_until_ready((loss, gradients))

    def measure(self) -> Measured:
        return self._measured(None, None)
