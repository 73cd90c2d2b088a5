"""The first run of a user's program, on the host: does it work, and does it do the same each time?

Leaves take no gradient in it, so that it holds no more than the forward pass itself needs. What is
found wrong here is told before anything is measured, and never blamed on a strategy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from ckptcli.autodiff.device import Device, device as open_device
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.errors import DtypeError, ProgramError, UntrackedBackwardWarning, UsageError
from ckptcli.workloads.base import ForwardResult
from ckptcli.workloads.program_network import Program


@dataclass(frozen=True, slots=True)
class Trial:
    """What the first run of a program showed.

    Attributes:
        parameters: host arrays of the leaves that require a gradient, by name.
        layer_count: how many layers it goes through with `device.layers`; 0 without.
        peak_bytes: the most that was live at once.
        notes: what is odd about it, and does no harm to memory and gradients.
    """

    parameters: Mapping[str, Any]
    layer_count: int
    peak_bytes: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of the loss: the bits and the sum of what it returned, and the nodes it made."""

    bits: bytes
    loss: float
    nodes: int


def try_out(program: Program) -> Trial:
    """Run the function twice, and the loss twice after the first.

    A program in a dtype that the host's library does not have is run in float32.

    Raises:
        ProgramError: it fails, or another loss comes out of the second run.
        UsageError: no parameter; or the loss is made of what the function computed from one.
        OutOfMemoryError: the forward pass does not fit in memory.
    """
    try:
        return _tried(program)
    except (DtypeError, ProgramError) as error:
        if not isinstance(error.__cause__ or error, DtypeError):
            raise
    return _tried(replace(program, dtype="float32"))


def _tried(program: Program) -> Trial:
    ledger = Ledger()
    with open_device().backend.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrackedBackwardWarning)
        run = _Run(program, ledger)
        ledger.start_phase()
        first = run.call()
        parameters, layers = run.parameters, run.network.device.layer_count
        peak_bytes = ledger.peak.live_bytes
        second = run.call()
        del run
        again = _Run(program, Ledger()).call()
    if again.bits != first.bits:
        raise ProgramError(
            f"`{program.text}` does something else each time: the loss is {first.loss!r} in one "
            f"run and {again.loss!r} in the next",
            "draw random numbers with device.uniform or device.normal, or seed the generator "
            "inside the function",
        )
    return Trial(parameters, layers, peak_bytes, tuple(_notes(first, second)))


class _Run:
    """The function called once, on a device of its own.

    Attributes:
        parameters: host copies of the leaves by name, after the first call of the loss.
    """

    def __init__(self, program: Program, ledger: Ledger) -> None:
        self._program = program
        self._ids = count()
        plain = open_device()
        backend = TrackedBackend(plain.backend, ledger)
        device = Device(backend, NoCheckpointing(), None, self._ids.__next__)
        self.network = program.load(device)
        self.parameters: dict[str, Any] = {}
        self._drawn = self.network.device.keys.drawn
        self._leave_out_gradients()

    def _leave_out_gradients(self) -> None:
        for leaf in self.network.device.leaves:
            leaf.node.tracked = 0

    def call(self) -> _Call:
        """Call the loss, the random draws begun where its first call begins them."""
        network = self.network
        network.device.keys.drawn = self._drawn
        before = next(self._ids)
        result = network.forward()
        nodes = next(self._ids) - before - 1
        self._check(result)
        if not self.parameters:
            self.parameters = {n: leaf.numpy().copy() for n, leaf in result.parameters.items()}
        values = result.root.numpy()
        return _Call(values.tobytes(), float(values.sum()), nodes)

    def _check(self, result: ForwardResult) -> None:
        text, root = self._program.text, result.root
        if not result.parameters:
            raise UsageError(
                f"`{text}` has no parameter: no tensor requires a gradient",
                "call `require_grad()` on the tensors to differentiate by, inside the function",
            )
        made_in_loss = len(result.parameters) > self.network.made
        if root.is_tracked and not made_in_loss:
            raise UsageError(
                f"the loss of `{text}` uses a tensor that the function computed from a parameter "
                "before: a backward pass would use that up",
                "compute everything that depends on a parameter inside the loss",
            )
        if root.node.op is None and not _is_one_of(root, result.parameters.values()):
            raise UsageError(
                f"the loss of `{text}` returned a tensor that no parameter leads to",
                "return what is computed from the parameters",
            )


def _is_one_of(tensor: Tensor, tensors: Iterable[Tensor]) -> bool:
    return any(tensor.node is other.node for other in tensors)


def _notes(first: _Call, second: _Call) -> Iterator[str]:
    """What differs between two calls of the same loss that draw the same numbers."""
    if second.bits != first.bits:
        yield (
            f"the loss is {first.loss!r} in its first call and {second.loss!r} in the second: the "
            "timed rounds compute other values each; detach what it carries from call to call"
        )
    if second.nodes > first.nodes:
        yield (
            f"the loss makes {first.nodes} nodes in its first call and {second.nodes} in the "
            "second: if it goes on growing, so do the times of the rounds"
        )
