"""JAX with layers as turns of a loop: one `lax.scan` instead of the same layer written out again.

All else is as for `jax`: value and gradient in one compiled program, which has one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.peers.base import Values, program_of, register
from ckptcli.peers.jax_engine import CompiledJaxEngine, CompiledJaxNetwork, JaxProgram
from ckptcli.workloads.base import Workload


class ScannedProgram(JaxProgram, Protocol):
    """A program with loops, whose parameters may be stacks of the workload's."""

    def own_gradients(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradients by the workload's own parameters, from those by the program's."""


@register
class ScannedJaxEngine(CompiledJaxEngine):
    """One compiled program with loops."""

    name: ClassVar[str] = "jax-scan"
    summary: ClassVar[str] = "the same with layers that are alike as turns of a lax.scan"
    programs: ClassVar[str] = "jax-scan"

    def network(self, workload: Workload, regions: Sequence[LayerRegion]) -> ScannedJaxNetwork:
        return ScannedJaxNetwork(program_of(self.programs, workload, regions))


class ScannedJaxNetwork(CompiledJaxNetwork):
    """What the program returns, brought to the workload's parameters."""

    program: ScannedProgram

    def check(self, result: Any) -> float | None:
        first = next(iter(self.program.own_gradients(result[1])))
        return float(np.sum(np.asarray(first), dtype=np.float64))

    def values(self, result: Any) -> Values:
        loss, gradients = result
        return Values(float(loss), [np.asarray(g) for g in self.program.own_gradients(gradients)])
