"""A program from a graph file: one JSON object a case, one or many a file (JSON Lines).

`{"strategy": ..., "ops": [{"op": NAME, "in": [INDEX, ...], ...}, ...], "root": INDEX}`. An index
counts ops, not nodes: some ops make no node, some more than one. A leaf is
`{"op": "leaf", "req": BOOL, "data": [...], "shape": [...]}`, square if it has no shape; every other
op is a function of the op table, its further keys the function's parameters. Everything is float64;
the loss is sum(root).

Source: the format of Burn's recorded conformance cases.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ckptcli import units
from ckptcli.autodiff.device import Device, device as open_device
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import CkptError, GraphFileError, OutOfMemoryError
from ckptcli.workloads.base import ForwardResult, Workload
from ckptcli.workloads.graph_sizes import LARGEST_BYTES, limit_bytes, needed_bytes


@dataclass(frozen=True, slots=True)
class OpCall:
    """One line of a program: a leaf (`data` is set) or a call of a function of the op table."""

    name: str
    inputs: tuple[int, ...]
    arguments: dict[str, Any]
    data: Any = None
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class GraphCase(Workload):
    """One program. `place` is how errors name it, `FILE:LINE`."""

    place: str
    index: int
    calls: tuple[OpCall, ...]
    root: int
    strategy: str | None
    consumes: bool = False
    replays: bool = False

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

    @property
    def shrink_hint(self) -> str:
        return "use smaller shapes in the file"

    def parameters(self) -> dict[str, Any]:
        return {
            str(index): call.data
            for index, call in enumerate(self.calls)
            if call.data is not None and call.requires_grad
        }

    def with_parameters(self, arrays: Mapping[str, Any]) -> GraphCase:
        calls = tuple(
            replace(call, data=arrays.get(str(index), call.data))
            for index, call in enumerate(self.calls)
        )
        return replace(self, calls=calls)

    def as_graph(self) -> GraphCase:
        return self

    def rooted_at(self, root: int) -> GraphCase:
        """The part of the program that op `root` depends on."""
        wanted = {root}
        for index in range(root, -1, -1):
            if index in wanted:
                wanted.update(self.calls[index].inputs)
        kept = sorted(wanted)
        place = {index: position for position, index in enumerate(kept)}
        calls = tuple(
            replace(self.calls[index], inputs=tuple(place[i] for i in self.calls[index].inputs))
            for index in kept
        )
        return replace(self, calls=calls, root=place[root])

    def as_json(self) -> str:
        """The case as a line of a graph file."""
        ops: list[dict[str, Any]] = []
        for call in self.calls:
            if call.data is None:
                ops.append({"op": call.name, "in": list(call.inputs), **call.arguments})
            else:
                shape, data = list(call.data.shape), call.data.ravel().tolist()
                ops.append({"op": "leaf", "req": call.requires_grad, "data": data, "shape": shape})
        return json.dumps({"strategy": self.strategy, "root": self.root, "ops": ops}) + "\n"

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        """The leaves; `check` has shown that one forward pass fits."""
        return sum(call.data.nbytes for call in self.calls if call.data is not None)

    def check(self) -> None:
        """Run the forward pass once.

        Raises:
            GraphFileError: an op that does not take its operands, or a root without a step.
            OutOfMemoryError: an op that does not fit in memory, where its arguments tell before it
                is computed.
        """
        device = open_device("numpy").autodiff().watched_by(None)
        with device.backend.quiet():
            root = self.load(device).checked_tensors()[self.root]
        if not root.is_tracked and not getattr(root.node.op, "step_when_untracked", False):
            raise GraphFileError(
                f"{self.place}: root {self.root} (`{self.calls[self.root].name}`) is a constant "
                "without a step, and backward() cannot start from it",
                'write `"req": true` at a leaf that it depends on, or choose another root',
            )


class GraphNetwork:
    """A graph case whose leaves' arrays are on a device."""

    def __init__(self, case: GraphCase, device: Device, arrays: dict[int, Any]) -> None:
        self.case = case
        self.device = device
        self.arrays = arrays

    def forward(self) -> ForwardResult:
        tensors = self.tensors()
        parameters = {
            str(index): tensors[index]
            for index, call in enumerate(self.case.calls)
            if call.data is not None and call.requires_grad
        }
        return ForwardResult(tensors[self.case.root], parameters)

    def tensors(self) -> list[Tensor]:
        """The output of every op; all of them are live until the last is there."""
        tensors: list[Tensor] = []
        for index, call in enumerate(self.case.calls):
            tensors.append(self._run(index, call, tensors))
        return tensors

    def checked_tensors(self) -> list[Tensor]:
        """The same, each op only after what its arguments ask for was found to fit."""
        tensors: list[Tensor] = []
        limit = limit_bytes()
        for index, call in enumerate(self.case.calls):
            shapes = [tensors[i].shape for i in call.inputs]
            needed = needed_bytes(call.name, shapes, call.arguments)
            if needed > LARGEST_BYTES:
                raise GraphFileError(
                    f"{self.case.place}: op {index}: `{call.name}` cannot take its operands: no "
                    f"array has {needed} bytes"
                )
            if needed > limit:
                raise OutOfMemoryError(
                    f"{self.case.place}: op {index}: `{call.name}` needs at least "
                    f"{units.size(needed)}, {units.size(limit)} are available",
                    f"{self.case.shrink_hint}, or --no-memory-check to try all the same",
                )
            tensors.append(self._run(index, call, tensors))
        return tensors

    def _run(self, index: int, call: OpCall, tensors: list[Tensor]) -> Tensor:
        if call.data is not None:
            leaf = self.device.tensor(self.arrays[index], copy=False)
            return leaf.require_grad() if call.requires_grad else leaf
        inputs: list[Any] = [tensors[i] for i in call.inputs]
        signature = signature_of(call.name)
        operands = dict(zip(signature.tensors, [inputs] if signature.takes_list else inputs))
        try:
            result: Tensor = OPERATIONS[call.name](**operands, **call.arguments)
        except CkptError as error:
            raise GraphFileError(f"{self.case.place}: op {index}: {error.message}") from error
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise GraphFileError(
                f"{self.case.place}: op {index}: `{call.name}` cannot take its operands: {error}"
            ) from error
        except MemoryError as error:
            raise OutOfMemoryError(
                f"{self.case.place}: op {index}: `{call.name}` does not fit in memory"
                + (f": {error}" if str(error) else ""),
                self.case.shrink_hint,
            ) from error
        return result


@dataclass(frozen=True, slots=True)
class Signature:
    """Which parameters of an op's function are tensors, and which are keys of the op.

    `arguments` says of each key what it holds: the annotation, or `mask`.
    """

    tensors: tuple[str, ...]
    arguments: dict[str, str]
    takes_list: bool
    optional: frozenset[str]
    """Those of either kind that may be left out, tensors from the end."""

    def takes(self, inputs: int) -> bool:
        """Whether this number of inputs fits."""
        needed = sum(name not in self.optional for name in self.tensors)
        return self.takes_list or needed <= inputs <= len(self.tensors)

    @property
    def inputs_text(self) -> str:
        """How many inputs the function takes, `1 input` or `2 to 3 inputs`."""
        needed = sum(name not in self.optional for name in self.tensors)
        if needed < len(self.tensors):
            return f"{needed} to {len(self.tensors)} inputs"
        return units.count(needed, "input")


@cache
def signature_of(name: str) -> Signature:
    """Read from the function of the op table: an op's declaration says all that a file may say."""
    parameters = inspect.signature(OPERATIONS[name]).parameters.values()
    tensors = tuple(p.name for p in parameters if "Tensor" in str(p.annotation))
    takes_list = any("Sequence[Tensor]" in str(p.annotation) for p in parameters)
    arguments = {
        p.name: "mask" if p.name == "mask" else str(p.annotation)
        for p in parameters
        if p.name not in tensors
    }
    optional = frozenset(p.name for p in parameters if p.default is not p.empty)
    return Signature(tensors, arguments, takes_list, optional)
