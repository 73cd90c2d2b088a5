"""Programs to be recorded and predicted, and the ledger's own figures beside the predicted ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ckptcli import Device, Tensor, device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.graph import Node
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.simulation.recorder import record
from ckptcli.simulation.simulator import Prediction, Simulator
from ckptcli.workloads.base import ForwardResult, Workload
from tests.helpers import unwatched

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


def measured(workload: Workload, strategy: Strategy) -> Figures:
    memory = memory_pass(workload, device("numpy"), strategy).memory
    return (
        memory.ledger_peak_forward_bytes,
        memory.after_forward_bytes,
        memory.ledger_peak_backward_bytes,
        memory.after_backward_bytes,
        memory.traced_peak_forward_bytes,
        memory.traced_peak_backward_bytes,
    )


def assert_predicted(workload: Workload, strategies: Sequence[str]) -> None:
    """The ledger's figures are predicted to the byte, workspace included."""
    workload.load(unwatched("none")).forward()  # a library allocates in its first calls
    simulator = Simulator(record(workload, open_backend("numpy")))
    for text in strategies:
        expected = measured(workload, strategy_of(text))
        assert predicted(simulator.predict(strategy_of(text))) == expected, text
