"""A program from a graph file: one JSON object a case, one or many a file (JSON Lines).

`{"strategy": ..., "ops": [{"op": NAME, "in": [INDEX, ...], ...}, ...], "root": INDEX}`. The index
of an op is its node id. A leaf is `{"op": "leaf", "req": BOOL, "data": [...], "shape": [...]}`,
square if it has no shape; every other op is a function of the op table, its further keys the
function's parameters. Everything is float64; the loss is sum(root).

Source: the format of Burn's recorded conformance cases.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import CkptError, GraphFileError
from ckptcli.workloads.base import ForwardResult


@dataclass(frozen=True, slots=True)
class OpCall:
    """One line of a program: a leaf (`data` is set) or a call of a function of the op table."""

    name: str
    inputs: tuple[int, ...]
    arguments: dict[str, Any]
    data: Any = None
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class GraphCase:
    """One program. `place` is how errors name it, `FILE:LINE`."""

    place: str
    index: int
    calls: tuple[OpCall, ...]
    root: int
    strategy: str | None

    @property
    def title(self) -> str:
        return f"graph = {self.place}, ops = {len(self.calls)}"

    @property
    def layer_count(self) -> int:
        return 0

    @property
    def settings(self) -> dict[str, object]:
        return {"name": "graph", "case": self.index, "ops": len(self.calls), "dtype": "float64"}

    def load(self, device: Device) -> GraphNetwork:
        arrays = {
            index: device.backend.asarray(call.data, "float64", copy=False)
            for index, call in enumerate(self.calls)
            if call.data is not None
        }
        return GraphNetwork(self, device, arrays)

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        return sum(call.data.nbytes for call in self.calls if call.data is not None)


class GraphNetwork:
    """A graph case whose leaves' arrays are on a device."""

    def __init__(self, case: GraphCase, device: Device, arrays: dict[int, Any]) -> None:
        self.case = case
        self.device = device
        self.arrays = arrays

    def forward(self) -> ForwardResult:
        tensors: list[Tensor] = []
        parameters = {}
        for index, call in enumerate(self.case.calls):
            tensor = self._run(index, call, tensors)
            tensors.append(tensor)
            if call.data is not None and call.requires_grad:
                parameters[str(index)] = tensor
        return ForwardResult(tensors[self.case.root], parameters)

    def _run(self, index: int, call: OpCall, tensors: list[Tensor]) -> Tensor:
        if call.data is not None:
            leaf = self.device.tensor(self.arrays[index], copy=False)
            return leaf.require_grad() if call.requires_grad else leaf
        inputs: list[Any] = [tensors[i] for i in call.inputs]
        signature = signature_of(call.name)
        operands = dict(zip(signature.tensors, [inputs] if signature.takes_list else inputs))
        try:
            result: Tensor = OPERATIONS[call.name](**operands, **call.arguments)
        except (CkptError, TypeError, ValueError) as error:
            reason = error.message if isinstance(error, CkptError) else str(error)
            raise GraphFileError(f"{self.case.place}: op {index}: {reason}") from error
        return result


@dataclass(frozen=True, slots=True)
class Signature:
    """Which parameters of an op's function are tensors, and which are keys of the op."""

    tensors: tuple[str, ...]
    arguments: tuple[str, ...]
    takes_list: bool
    optional: frozenset[str]
    """Those of either kind that may be left out, tensors from the end."""

    def takes(self, inputs: int) -> bool:
        """Whether this number of inputs fits."""
        needed = sum(name not in self.optional for name in self.tensors)
        return self.takes_list or needed <= inputs <= len(self.tensors)

    @property
    def inputs_text(self) -> str:
        """How many inputs the function takes, `2` or `2 to 3`."""
        needed = sum(name not in self.optional for name in self.tensors)
        return f"{needed}" if needed == len(self.tensors) else f"{needed} to {len(self.tensors)}"


@cache
def signature_of(name: str) -> Signature:
    """Read from the function of the op table: an op's declaration says all that a file may say."""
    parameters = inspect.signature(OPERATIONS[name]).parameters.values()
    tensors = tuple(p.name for p in parameters if "Tensor" in str(p.annotation))
    takes_list = any("Sequence[Tensor]" in str(p.annotation) for p in parameters)
    arguments = tuple(p.name for p in parameters if p.name not in tensors)
    optional = frozenset(p.name for p in parameters if p.default is not p.empty)
    return Signature(tensors, arguments, takes_list, optional)
