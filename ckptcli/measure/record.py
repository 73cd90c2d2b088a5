"""The result of a run, as frozen data: what `--json` prints and what every report reads.

Sizes are bytes, times are seconds. Totals include parameters and input. None is "not known", never
0. No field holds an array value. Lists that grow with the program are cut to what a page can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.measure.machine import Machine
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.rounds import Sample
from ckptcli.measure.statistics import Estimate, Ratio

SCHEMA = "ckpt.run/1"
PHASES = ("forward", "backward", "total")


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """One storage that was live at the peak, and why."""

    node: int | None
    op: str | None
    shape: Sequence[int]
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class PeakLive:
    """What was live at the peak of the backward pass: the largest, and the totals of all."""

    largest: Sequence[LiveTensor]
    total_bytes: int
    total_tensors: int
    bytes_by_why: dict[str, int]


@dataclass(frozen=True, slots=True)
class AllocatorPeak:
    """The peaks of a device's allocator in one phase, of the whole process; None is not known."""

    requested_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """The exact account of one pass. Peaks: the ledger's, and with kernel temporaries.

    `offloaded_bytes` are on the host after forward. `allocator_*` is what the device's allocator
    tells beside them; None where it tells nothing.
    """

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
    allocator_forward: AllocatorPeak | None = None
    allocator_backward: AllocatorPeak | None = None
    offloaded_bytes: int = 0

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

    @property
    def ledger_peak_bytes(self) -> int:
        """The exact peak of the whole pass, without kernel temporaries."""
        return max(self.ledger_peak_forward_bytes, self.ledger_peak_backward_bytes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the pass computed, as figures to compare.

    Attributes:
        grad_within_spread: on a library that is not deterministic, other bits that lie no further
            from the reference's than two runs of the reference do.
        gradient: the derivative, where the program has one parameter of one element.
        exact: loss and derivative from theory, where they are known.
        finite_difference: of the loss, where there is a `gradient` in float64; None where it is
            unusable too.
    """

    loss: float
    grad_sum_w0: float | None
    grad_sha256: str
    recomputed_by_op: dict[str, int]
    grad_within_spread: bool = False
    gradient: float | None = None
    exact: Sequence[float] | None = None
    finite_difference: float | None = None

    @property
    def recomputed_nodes(self) -> int:
        return sum(self.recomputed_by_op.values())


@dataclass(frozen=True, slots=True)
class Cost:
    """Floating-point operations and bytes moved: of the forward pass, and of what is recomputed.

    What an op's backward evaluates inside itself is in neither.
    """

    forward_flops: int
    forward_moved_bytes: int
    recomputed_flops: int
    recomputed_moved_bytes: int

    @property
    def flops_share(self) -> float:
        """Recomputed operations as a share of the forward's."""
        return self.recomputed_flops / self.forward_flops if self.forward_flops else 0.0

    @property
    def moved_bytes_share(self) -> float:
        """Recomputed traffic as a share of the forward's."""
        return (
            self.recomputed_moved_bytes / self.forward_moved_bytes
            if self.forward_moved_bytes
            else 0.0
        )


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """One op of the memory pass, in order: the most that was live during it, and after it.

    Times are seconds from the start of the pass, which is slower than a timed one.
    """

    phase: str
    node: int | None
    op: str | None
    high_bytes: int
    end_bytes: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Life:
    """A storage from the timeline point at which it appears to the one at which it is freed."""

    node: int | None
    op: str | None
    why: str
    shape: Sequence[int]
    bytes: int
    born: int
    died: int | None


@dataclass(frozen=True, slots=True)
class NodeFate:
    """What became of one node: parameter, input, saved, recomputed, dropped or output."""

    node: int
    op: str | None
    parents: Sequence[int]
    shape: Sequence[int]
    bytes: int
    fate: str
    uses: int
    held_for_constants: Sequence[int]
    dtype: str = ""
    source: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One line of Burn's log, and the nodes visited under it."""

    node: int
    needed_by: int
    visited: Sequence[int]


@dataclass(frozen=True, slots=True)
class Trace:
    """The memory pass as it went. `cut` says that a list was too long to keep whole.

    `ops_per_point` is how many ops a point of the timeline stands for, 1 unless it was cut; `born`
    and `died` of lives are indices of points.
    """

    timeline: Sequence[TimelinePoint]
    lives: Sequence[Life]
    nodes: Sequence[NodeFate]
    retrievals: Sequence[Retrieval]
    cut: bool
    ops_per_point: int = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """One word on a strategy against the reference, and the reason."""

    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class StrategyRecord:
    """One strategy of a run. `samples` are the counted ones, `warmup` those before them.

    `times`, `ratios` (to the reference; None for it) and `judgement` are derived from the rest by
    `ckptcli.measure.analysis`.
    """

    strategy: str
    device: str
    reference: bool
    memory: Memory
    outcome: Outcome
    cost: Cost
    trace: Trace
    warmup: Sequence[Sample] = ()
    samples: Sequence[Sample] = ()
    times: dict[str, Estimate] | None = None
    ratios: dict[str, Ratio] | None = None
    judgement: Judgement | None = None

    def seconds(self, phase: str) -> list[float]:
        """The counted samples of a phase."""
        return [float(getattr(sample, f"{phase}_s")) for sample in self.samples]

    def median_s(self, phase: str) -> float | None:
        """The median of a phase; None without a sample."""
        return None if self.times is None else self.times[phase].median


@dataclass(frozen=True, slots=True)
class Failure:
    """A strategy that ran out of memory: in which phase, what the library said, what was live."""

    strategy: str
    phase: str
    message: str
    live: PeakLive


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A whole run.

    `stopped` is why no further round was made; `config` the effective settings of the command;
    `library` the array library with its version; `failures` are the strategies, and the peers by
    their names, that ran out of memory and have no figures; `peers` the same strategies in other
    libraries, where they were asked for.
    """

    workload: dict[str, object]
    title: str
    backend: str
    machine: Machine
    version: str
    seed: int
    processes: int
    threshold: float
    stopped: str
    partial: bool
    config: dict[str, object]
    warnings: Sequence[str]
    strategies: Sequence[StrategyRecord]
    library: str = ""
    failures: Sequence[Failure] = ()
    peers: Sequence[PeerRecord] = ()

    @property
    def reference(self) -> StrategyRecord | None:
        """What the others are compared with: the one marked, else the first `none`, else none."""
        marked = [record for record in self.strategies if record.reference]
        named = [record for record in self.strategies if record.strategy == "none"]
        return next(iter([*marked, *named]), None)

    @property
    def rounds(self) -> int:
        """How many rounds are complete and counted."""
        return min((len(record.samples) for record in self.strategies), default=0)
