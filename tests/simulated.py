"""Programs to be recorded and predicted, and the ledger's own figures beside the predicted ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ckptcli import Device, Tensor, device
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.graph import Node
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Prediction, Simulator
from ckptcli.workloads.base import ForwardResult, Workload

Figures = tuple[int | None, ...]


class FunctionNetwork:
    """Leaves on a device, and a function of them."""

    def __init__(self, leaves: Sequence[Tensor], function: Callable[..., Tensor]) -> None:
        self.leaves = leaves
        self.function = function

    def forward(self) -> ForwardResult:
        root = self.function(*self.leaves)
        named = {f"x{place}": leaf for place, leaf in enumerate(self.leaves) if leaf.is_tracked}
        return ForwardResult(root, named)


class FunctionWorkload(Workload):
    """A function of tracked leaves with these values, as a program."""

    title = "function"
    shrink_hint = "use smaller operands"
    layer_count = 2
    settings: ClassVar[dict[str, object]] = {}

    def __init__(self, arrays: Sequence[Any], function: Callable[..., Tensor]) -> None:
        self.arrays = arrays
        self.function = function

    def load(self, dev: Device) -> FunctionNetwork:
        leaves = [dev.tensor(array, str(array.dtype)).require_grad() for array in self.arrays]
        return FunctionNetwork(leaves, self.function)

    def parameters(self) -> dict[str, Any]:
        return {f"x{place}": array for place, array in enumerate(self.arrays)}


class RandomKeepSet(Strategy):
    """Holds about half of the values, the same ones in every pass."""

    keyword = "random"
    label = "Random"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @property
    def name(self) -> str:
        return f"random:{self.seed}"

    def recomputes(self, node: Node) -> bool:
        return random.Random(self.seed * 1_000_003 + node.id).random() < 0.5


def strategy_of(text: str) -> Strategy:
    """`random:SEED`, or a strategy by name."""
    if text.startswith("random:"):
        return RandomKeepSet(int(text.partition(":")[2]))
    return parse_strategy(text)


def predicted(prediction: Prediction) -> Figures:
    return (
        prediction.forward_peak_bytes,
        prediction.after_forward_bytes,
        prediction.backward_peak_bytes,
        prediction.after_backward_bytes,
        prediction.forward_traced_bytes,
        prediction.backward_traced_bytes,
    )


def measured(workload: Workload, strategy: Strategy, base: Device | None = None) -> Figures:
    """The ledger's figures on `base`, by default NumPy; where nobody sees the workspace of kernels
    the ledger's peaks stand for those with it.
    """
    memory = memory_pass(workload, base or device("numpy"), strategy).memory
    peaks = memory.ledger_peak_forward_bytes, memory.ledger_peak_backward_bytes
    traced = memory.traced_peak_forward_bytes, memory.traced_peak_backward_bytes
    return (
        peaks[0],
        memory.after_forward_bytes,
        peaks[1],
        memory.after_backward_bytes,
        *(peaks if traced[0] is None else traced),
    )


def assert_predicted(
    workload: Workload, strategies: Sequence[str], base: Device | None = None
) -> None:
    """The ledger's figures are predicted to the byte, workspace included where it is seen."""
    base = base or device("numpy")
    warming = base.autodiff().watched_by(None)  # a library allocates in its first calls
    with base.backend.quiet():
        workload.load(warming).forward()
    simulator = Simulator(record(workload, base.backend, workload.consumes))
    for text in strategies:
        expected = measured(workload, strategy_of(text), base)
        assert predicted(simulator.predict(strategy_of(text))) == expected, text
