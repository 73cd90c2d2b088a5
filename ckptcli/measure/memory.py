"""The memory of one row: what is held, how high it peaks, and what was live there.

Sizes are bytes. Totals include parameters and input. None is "not known", never 0.

Invariant: `peak_bytes` is `ledger_peak_bytes` and `workspace_bytes`, of a program that is compiled
whole `compiled_peak_bytes`, and the one figure that is called peak anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ckptcli.measure.fields import Bytes, Count, Words, derived
from ckptcli.measure.trace import Shape

WHOLE_MODULE = "(module)"
"""The path of a PyTorch module itself, which has none."""

PeakPhase = Annotated[str, Words(("forward", "recompute", "backward", "step"))]
StepPhase = Annotated[str, Words(("forward", "backward", "step"))]

FIXED = ("parameter", "gradient of a parameter", "optimizer")
"""What is there at the end of every pass, whatever is checkpointed."""


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """One storage that was live at the peak.

    Attributes:
        node: Node id; null for what belongs to none.
        op: Op that made it; null for a leaf, or what belongs to no node.
        shape: Sizes of the dimensions, outermost first.
        bytes: Size, bytes.
        why: What it is: parameter, optimizer, buffer, input, saved, recomputed, gradient, gradient
            of a parameter, output, temporary.
        source: The line of the program that made it, FILE:LINE; empty if not known.
        module: Of a PyTorch module, the part that made it or that it belongs to, by its path; empty
            elsewhere.
        held_by: Of a PyTorch module, the steps of the backward pass that hold it, `checkpoint`, or
            the role and name of what else does; empty if not known.
    """

    node: Count | None
    op: str | None
    shape: Shape
    bytes: Bytes
    why: str
    source: str = ""
    module: str = ""
    held_by: Sequence[str] = ()


@dataclass(slots=True)
class Holder:
    """What holds storages at the peak of a PyTorch module's pass, and is no step of the backward
    pass.

    Attributes:
        name: Name of the argument, path of the attribute, variable of a closure or of the file;
            empty for the output.
        role: What it is to the pass.
        kind: Its class.
        bytes: What it holds alone, bytes.
        tensors: How many storages that are.
        checkpoints: How many checkpoints keep it.
        all_checkpoints: How many checkpoints the pass made.
        more_bytes: How much lower the peak is without it, bytes; null where that was not tried.
    """

    name: str
    role: Annotated[str, Words(("argument", "closure", "output", "attribute", "global"))]
    kind: str
    bytes: Bytes = 0
    tensors: Count = 0
    checkpoints: Count = 0
    all_checkpoints: Count = 0
    more_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PeakLive:
    """What was live at the peak of the backward pass, of a PyTorch module at that of the whole.

    Attributes:
        largest: The largest storages, largest first.
        total_bytes: All that was live, bytes.
        total_tensors: How many storages that were.
        bytes_by_why: The same by what it is, bytes.
        phase: The part of the pass that made the peak.
        module: Of a PyTorch module, the part that ran then, was computed again then or whose
            backward ran, by its path; empty elsewhere.
        holders: What holds some of it beside the backward pass, the most bytes first.
    """

    largest: Sequence[LiveTensor]
    total_bytes: Bytes
    total_tensors: Count
    bytes_by_why: dict[str, Bytes]
    phase: PeakPhase = "backward"
    module: str = ""
    holders: Sequence[Holder] = ()

    @property
    def fixed_bytes(self) -> int:
        """Of it what no checkpoint has a say in: parameters, their gradients, the optimizer."""
        return sum(self.bytes_by_why.get(why, 0) for why in FIXED)


@dataclass(frozen=True, slots=True)
class PhaseMemory:
    """One phase of a step of training, of a PyTorch module.

    Of several micro-batches: before the first, after the last, and the highest peak of all.

    Attributes:
        phase: Forward, backward, or the optimizer's step.
        before_bytes: What was live before it, by what it is, bytes.
        after_bytes: What was live after it, by what it is, bytes.
        peak_bytes: The most that was live in it, workspace of kernels left out, bytes.
    """

    phase: StepPhase
    before_bytes: dict[str, Bytes]
    after_bytes: dict[str, Bytes]
    peak_bytes: Bytes


@dataclass(frozen=True, slots=True)
class AllocatorPeak:
    """Peaks of a device's allocator in one phase, of the whole process. Null is not known.

    Attributes:
        requested_bytes: What was asked for, bytes.
        allocated_bytes: Blocks in use, rounded up to the allocator's unit, bytes.
        reserved_bytes: What the allocator took from the device, bytes.
    """

    requested_bytes: Bytes | None
    allocated_bytes: Bytes | None
    reserved_bytes: Bytes | None


@dataclass(frozen=True, slots=True)
class AllocatorUse:
    """What a device's allocator has after a phase, where it keeps no peaks, of the whole process.

    Attributes:
        in_use_bytes: Blocks that tensors have, bytes.
        driver_bytes: What the allocator took from the driver, bytes.
    """

    in_use_bytes: Bytes
    driver_bytes: Bytes


@dataclass(frozen=True, slots=True)
class Memory:
    """The account of one pass.

    Attributes:
        saved_bytes: Unique storages held from forward to backward, without parameters, input and
            output, bytes.
        saved_tensors: How many storages these are.
        params_input_bytes: Parameters and input, bytes.
        after_forward_bytes: Live between forward and backward, bytes.
        ledger_peak_forward_bytes: Exact peak of the forward pass, workspace of kernels left out,
            bytes.
        ledger_peak_backward_bytes: Exact peak of the backward pass, workspace of kernels left out,
            bytes.
        traced_peak_forward_bytes: Peak of the forward pass with the workspace of kernels, bytes.
        traced_peak_backward_bytes: Peak of the backward pass with the workspace of kernels, bytes.
        peak_live: What was live at the peak of the backward pass, of a PyTorch module at that of
            the whole; null if not known.
        after_backward_bytes: Live after the backward pass, gradients included, bytes.
        allocator_forward: What the device's allocator tells of the forward pass; null where it
            tells nothing.
        allocator_backward: What the device's allocator tells of the backward pass; null where it
            tells nothing.
        allocator_after_forward: What an allocator without peaks has after the forward pass; null of
            any other.
        allocator_after_backward: What an allocator without peaks has after the backward pass; null
            of any other.
        offloaded_bytes: What a policy or a plan has moved to the host's memory, after the forward
            pass, bytes.
        compiled_temp_bytes: What a compiler planned for temporaries of the whole program,
            parameters, input and gradients not included, bytes; null if nothing is compiled.
        compiled_peak_bytes: What a program that is compiled whole needs at once, parameters and
            input included: the peak that its device measured, else what its compiler planned,
            bytes; null if nothing is compiled, or it does not tell.
        optimizer_bytes: The optimizer's state, live through the whole pass, bytes; null without an
            optimizer.
        ledger_peak_step_bytes: Exact peak of the optimizer's step, workspace of kernels left out,
            bytes; null without an optimizer.
        traced_peak_step_bytes: Peak of the optimizer's step with the workspace of kernels, bytes;
            null without an optimizer, or if not known.
        phases: The phases of a PyTorch module's step, in order; empty elsewhere.
        process_peak_bytes: How far the resident memory of the process rose above what it had
            before a pass whose parameters and input were loaded, bytes; of a compiled program the
            memory of a fresh process.
    """

    saved_bytes: Bytes
    saved_tensors: Count
    params_input_bytes: Bytes | None
    after_forward_bytes: Bytes | None
    ledger_peak_forward_bytes: Bytes | None
    ledger_peak_backward_bytes: Bytes | None
    traced_peak_forward_bytes: Bytes | None
    traced_peak_backward_bytes: Bytes | None
    peak_live: PeakLive | None
    after_backward_bytes: Bytes | None
    allocator_forward: AllocatorPeak | None = None
    allocator_backward: AllocatorPeak | None = None
    allocator_after_forward: AllocatorUse | None = None
    allocator_after_backward: AllocatorUse | None = None
    offloaded_bytes: Bytes = 0
    compiled_temp_bytes: Bytes | None = None
    compiled_peak_bytes: Bytes | None = None
    process_peak_bytes: Bytes | None = None
    optimizer_bytes: Bytes | None = None
    ledger_peak_step_bytes: Bytes | None = None
    traced_peak_step_bytes: Bytes | None = None
    phases: Sequence[PhaseMemory] = ()

    @property
    @derived
    def peak_forward_bytes(self) -> Bytes | None:
        """Peak of the forward pass, workspace of kernels included where it is known, bytes."""
        return _largest(self.ledger_peak_forward_bytes, self.traced_peak_forward_bytes)

    @property
    @derived
    def peak_backward_bytes(self) -> Bytes | None:
        """Peak of the backward pass, workspace of kernels included where it is known, bytes."""
        return _largest(self.ledger_peak_backward_bytes, self.traced_peak_backward_bytes)

    @property
    @derived
    def ledger_peak_bytes(self) -> Bytes | None:
        """Exact peak of the whole pass, workspace of kernels left out, bytes."""
        return _largest(
            self.ledger_peak_forward_bytes,
            self.ledger_peak_backward_bytes,
            self.ledger_peak_step_bytes,
        )

    @property
    @derived
    def workspace_bytes(self) -> Bytes | None:
        """What kernels need on top of the exact peak, bytes: a bound, of a PyTorch module what its
        allocator tells; null if not known.
        """
        exact = self.ledger_peak_bytes
        if self.traced_peak_forward_bytes is None or self.traced_peak_backward_bytes is None:
            return None
        return None if exact is None else (self.peak_bytes or 0) - exact

    @property
    def above_allocator_bytes(self) -> int:
        """What the exact peak is above the allocator's of a pass that nothing watched, where a
        library computes another way when it is watched; 0 where that is not known.
        """
        phases = (self.traced_peak_forward_bytes, self.traced_peak_backward_bytes)
        told = _largest(*phases, self.traced_peak_step_bytes)
        if None in phases or told is None or self.ledger_peak_bytes is None:
            return 0
        return max(0, self.ledger_peak_bytes - told)

    @property
    @derived
    def peak_bytes(self) -> Bytes | None:
        """The peak: the exact one and the workspace of kernels where it is known; of a program that
        is compiled whole what its device measured or its compiler planned; bytes.
        """
        exact = _largest(
            self.peak_forward_bytes,
            self.peak_backward_bytes,
            self.ledger_peak_step_bytes,
            self.traced_peak_step_bytes,
        )
        return self.compiled_peak_bytes if exact is None else exact


def held_alone(
    saved_bytes: int,
    saved_tensors: int,
    compiled_temp_bytes: int | None = None,
    compiled_peak_bytes: int | None = None,
) -> Memory:
    """The memory of a library that tells what it holds, and no peak but a compiled program's."""
    return Memory(
        saved_bytes=saved_bytes,
        saved_tensors=saved_tensors,
        params_input_bytes=None,
        after_forward_bytes=None,
        ledger_peak_forward_bytes=None,
        ledger_peak_backward_bytes=None,
        traced_peak_forward_bytes=None,
        traced_peak_backward_bytes=None,
        peak_live=None,
        after_backward_bytes=None,
        compiled_temp_bytes=compiled_temp_bytes,
        compiled_peak_bytes=compiled_peak_bytes,
    )


def _largest(*figures: int | None) -> int | None:
    return max((figure for figure in figures if figure is not None), default=None)
