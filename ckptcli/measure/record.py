"""The result of a run, as frozen data: what `--json` prints and what every report reads.

Sizes are bytes, times are seconds. Totals include parameters and input. None is "not known", never
0. No field holds an array value.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from ckptcli.measure.machine import Machine
from ckptcli.measure.rounds import Sample

SCHEMA = "ckpt.run/1"


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """One storage that was live at the peak, and why."""

    node: int | None
    op: str | None
    shape: tuple[int, ...]
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class PeakLive:
    """What was live at the peak of the backward pass: the largest, and the totals of all."""

    largest: tuple[LiveTensor, ...]
    total_bytes: int
    total_tensors: int
    bytes_by_why: dict[str, int]


@dataclass(frozen=True, slots=True)
class Memory:
    """The exact account of one pass. Peaks: the ledger's, and with kernel temporaries."""

    params_input_bytes: int
    after_forward_bytes: int
    saved_bytes: int
    saved_tensors: int
    ledger_peak_forward_bytes: int
    ledger_peak_backward_bytes: int
    traced_peak_forward_bytes: int | None
    traced_peak_backward_bytes: int | None
    peak_live: PeakLive
    after_backward_bytes: int

    @property
    def peak_forward_bytes(self) -> int:
        """The larger of both accounts."""
        return max(self.ledger_peak_forward_bytes, self.traced_peak_forward_bytes or 0)

    @property
    def peak_backward_bytes(self) -> int:
        """The larger of both accounts."""
        return max(self.ledger_peak_backward_bytes, self.traced_peak_backward_bytes or 0)

    @property
    def peak_bytes(self) -> int:
        """The peak of the whole pass."""
        return max(self.peak_forward_bytes, self.peak_backward_bytes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the pass computed, as figures to compare."""

    loss: float
    grad_sum_w0: float | None
    grad_sha256: str
    recomputed_by_op: dict[str, int]

    @property
    def recomputed_nodes(self) -> int:
        return sum(self.recomputed_by_op.values())


@dataclass(frozen=True, slots=True)
class StrategyRecord:
    """One strategy of a run. `samples` are the counted ones, `warmup` those before them."""

    strategy: str
    device: str
    reference: bool
    memory: Memory
    outcome: Outcome
    warmup: tuple[Sample, ...] = ()
    samples: tuple[Sample, ...] = ()

    def median_s(self, phase: str) -> float | None:
        """The median of `forward_s`, `backward_s` or `total_s`; None without a sample."""
        values = [getattr(sample, phase) for sample in self.samples]
        return statistics.median(values) if values else None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A whole run."""

    workload: dict[str, object]
    title: str
    backend: str
    machine: Machine
    version: str
    seed: int
    reps: int
    warnings: tuple[str, ...]
    partial: bool
    strategies: tuple[StrategyRecord, ...]

    @property
    def reference(self) -> StrategyRecord | None:
        """What the others are compared with: the one marked, else the first `none`."""
        marked = [record for record in self.strategies if record.reference]
        named = [record for record in self.strategies if record.strategy == "none"]
        return next(iter([*marked, *named]), None)
