"""What was measured of a peer: the same network under the same strategy in another library.

A peer has no ledger of ours, no trace and no nodes, so that its record is a class of its own beside
`StrategyRecord`. None is "not known" or "the library does not tell", never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.measure.rounds import Sample
from ckptcli.measure.statistics import Estimate, Ratio


@dataclass(frozen=True, slots=True)
class PeerSample:
    """One pass, the mean of `repeats`. A library that makes one program of both phases times
    neither apart.
    """

    forward_s: float | None
    backward_s: float | None
    total_s: float
    repeats: int = 1
    collected: bool = False
    process: int = 0

    @classmethod
    def of(cls, sample: Sample, splits: bool) -> PeerSample:
        """What a round measured; `splits` is whether its phases mean anything."""
        return cls(
            sample.forward_s if splits else None,
            sample.backward_s if splits else None,
            sample.total_s,
            sample.repeats,
            sample.collected,
            sample.process,
        )


@dataclass(frozen=True, slots=True)
class PeerMemory:
    """What the library holds between forward and backward, and its peak.

    Attributes:
        saved_bytes, saved_tensors: unique storages besides parameters, input and loss.
        peak_bytes: the most in use at once, parameters and input included; scratch memory inside
            kernels is not in it.
        compiled_temp_bytes: what a compiler planned for temporaries of the whole program, before
            it ran; parameters, input and gradients are not in it.
    """

    saved_bytes: int
    saved_tensors: int
    peak_bytes: int | None
    compiled_temp_bytes: int | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Loss and gradients beside ckpt's own.

    Attributes:
        loss: the library's.
        loss_relative, loss_ulp: its distance from ckpt's, as a share of it and in spacings of the
            dtype there.
        gradient_relative, gradient_ulp: the largest distance in any gradient, as a share of the
            largest element of that gradient, and in spacings of the dtype there.
        tolerance: `agrees` is whether both shares are at most this.
    """

    loss: float
    loss_relative: float
    loss_ulp: float
    gradient_relative: float
    gradient_ulp: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.loss_relative <= self.tolerance and self.gradient_relative <= self.tolerance


@dataclass(frozen=True, slots=True)
class PeerRecord:
    """One strategy in one library. `reason` says why there is no peer; all figures are None then.

    `times`, `ratio` (to the run's reference) and `own_ratio` (to ckpt under the same strategy) are
    derived by `ckptcli.measure.analysis`.

    Attributes:
        library: name and version, for people.
        threads: how many the library computes with.
        recomputed_by_op: how many `matmul`, `sigmoid` and `svd` backward computes again.
        compile_s: seconds that compilation took, in no sample.
    """

    engine: str
    strategy: str
    library: str
    threads: int | None = None
    reason: str | None = None
    memory: PeerMemory | None = None
    recomputed_by_op: dict[str, int] | None = None
    agreement: Agreement | None = None
    compile_s: float | None = None
    warmup: Sequence[PeerSample] = ()
    samples: Sequence[PeerSample] = ()
    times: dict[str, Estimate] | None = None
    ratio: Ratio | None = None
    own_ratio: Ratio | None = None

    @property
    def name(self) -> str:
        """How tables and warnings call it."""
        return f"{self.engine} {self.strategy}"

    def seconds(self, phase: str) -> list[float]:
        """The counted samples of a phase; empty where it is not timed apart."""
        figures = [getattr(sample, f"{phase}_s") for sample in self.samples]
        return [] if None in figures else figures

    def median_s(self, phase: str) -> float | None:
        """The median of a phase; None where there is none."""
        known = None if self.times is None else self.times.get(phase)
        return None if known is None else known.median
