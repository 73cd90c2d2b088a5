"""One strategy of one engine: whatever is known of it is there, what is not is None.

An engine is ckpt's own on an array library, PyTorch, JAX, or one of these with a program of the
user's. Times are seconds.

Invariant: `times`, `ratios`, `engine_ratios`, `own_ratio` and `judgement` follow from the rest
(`ckptcli.measure.analysis`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from ckptcli.measure import OURS
from ckptcli.measure.compiled import Compiled
from ckptcli.measure.fields import (
    DERIVED,
    FLAT,
    HIDDEN,
    Bytes,
    Count,
    Figure,
    Pattern,
    Positive,
    Seconds,
    Share,
    Words,
    derived,
)
from ckptcli.measure.memory import Memory
from ckptcli.measure.rounds import Sample
from ckptcli.measure.statistics import Estimate, Ratio
from ckptcli.measure.trace import Trace

PHASES = ("forward", "backward", "step", "total")
WORDS = ("wrong", "worse", "effective", "held only", "no effect")
Identity = tuple[str, str, tuple[tuple[str, float], ...]]
"""Engine, strategy and point."""

Digest = Annotated[str, Pattern("^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the pass computed, as figures to compare.

    Attributes:
        loss: The loss, without unit.
        grad_sum_w0: The sum of the first weight's gradient, without unit; null if there is none.
        grad_sha256: SHA-256 over the bits of all gradients, in hexadecimal digits; null for another
            library, whose bits say nothing beside ckpt's.
        recomputed_by_op: Values computed again by op, a count each; of another engine the ops that
            it is asked about alone, null if it does not tell.
        grad_within_spread: On a library that is not deterministic: other bits, but no further from
            the reference's than two of its runs.
        gradient: The derivative of the loss, without unit, where the program has one parameter of
            one element; null for any other.
        exact: The loss and its derivative as theory has them, without unit; null where they are not
            known.
        finite_difference: The derivative from a fourth-order central difference of the loss,
            without unit; null where there is no gradient to hold against it, or where its two steps
            lie too far apart.
    """

    loss: Figure
    grad_sum_w0: float | None
    grad_sha256: Digest | None
    recomputed_by_op: dict[str, Positive] | None
    grad_within_spread: bool = False
    gradient: float | None = None
    exact: Sequence[float] | None = None
    finite_difference: float | None = None

    @property
    @derived
    def recomputed_nodes(self) -> Count | None:
        """How many values were computed again in backward; null if not known."""
        known = self.recomputed_by_op
        return None if known is None else sum(known.values())


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations and traffic of the forward pass, and of what is recomputed.

    What an op's backward evaluates inside itself is in neither.

    Attributes:
        forward_flops: Floating-point operations of the forward pass; a function such as exp counts
            as one.
        forward_moved_bytes: Read and written by the ops of the forward pass, bytes.
        recomputed_flops: Floating-point operations of what was computed again.
        recomputed_moved_bytes: Read and written by what was computed again, bytes.
    """

    forward_flops: Count
    forward_moved_bytes: Bytes
    recomputed_flops: Count
    recomputed_moved_bytes: Bytes

    @property
    @derived
    def recomputed_flops_share(self) -> Share:
        """Recomputed operations as a share of the forward's, 1 is 100 %."""
        return self.recomputed_flops / self.forward_flops if self.forward_flops else 0.0

    @property
    @derived
    def recomputed_moved_bytes_share(self) -> Share:
        """Recomputed traffic as a share of the forward's, 1 is 100 %."""
        moved_bytes = self.forward_moved_bytes
        return self.recomputed_moved_bytes / moved_bytes if moved_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Loss and gradients beside those that they have to be: ckpt's own, or those of `none`.

    Attributes:
        loss: The engine's loss.
        loss_relative: Distance of the losses as a share of the expected one.
        loss_ulp: The same in spacings of the dtype.
        gradient_relative: The largest distance in any gradient as a share of that gradient's
            largest element.
        gradient_ulp: The same in spacings of the dtype at that element.
        tolerance: Both shares are at most this if they agree; without unit.
        beside: Whose loss and gradients are expected, for people.
    """

    loss: Figure
    loss_relative: Figure
    loss_ulp: Figure
    gradient_relative: Figure
    gradient_ulp: Figure
    tolerance: Share
    beside: str = OURS

    @property
    @derived
    def agrees(self) -> bool:
        """Whether they agree."""
        return self.loss_relative <= self.tolerance and self.gradient_relative <= self.tolerance


@dataclass(frozen=True, slots=True)
class Judgement:
    """One word on what the strategy did to memory against the reference, and why.

    Attributes:
        word: `wrong` before `worse` before `effective` before `held only` before `no effect`.
        reason: The reason, for people; its text is not part of the schema.
    """

    word: Annotated[str, Words(WORDS)]
    reason: str


@dataclass(frozen=True, slots=True)
class Times:
    """The counted samples of one phase and what follows from them.

    Attributes:
        median: Median, seconds; null without a sample.
        low: Lower end of the exact 95 % interval of the median, seconds; null under six samples.
        high: Upper end of it, seconds.
        iqr_share: Interquartile range as a share of the median, 1 is 100 %.
        least: Smallest sample, seconds.
        most: Largest sample, seconds.
        samples: All counted samples in the order of the rounds, seconds.
    """

    median: Seconds | None
    low: Seconds | None
    high: Seconds | None
    iqr_share: Share | None
    least: Seconds | None
    most: Seconds | None
    samples: Sequence[Seconds]


@dataclass(frozen=True, slots=True)
class Passes:
    """The samples whole.

    Attributes:
        warmup: Those before the counted ones.
        counted: Those that every figure is made of.
    """

    warmup: Sequence[Sample] = ()
    counted: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy under one engine. A row without figures says why in `reason`.

    Attributes:
        strategy: Name, as on the command line.
        device: Where it computes: the device line of ckpt's engine, the library of another.
        reference: Whether it was added only to compare with.
        point: Where its program stands among several, the value of each option that has several
            by the option's name, such as {"layers": 4}; empty where there is one program.
        engine: Name, as in `--engine`; ckpt's own is `ckpt`, and `replay` that of its passes as
            flat programs.
        library: Name and version of the library that computes, for people.
        threads: Threads that the library computes with; null if it does not tell.
        reason: Why there are no figures, for people; null if there are.
        failed: Whether `reason` is a failure of the program, not a missing counterpart.
        regions: The parts of a module of the user's own under each checkpoint, by their paths.
        agreement: How far loss and gradients are from what they have to be; null where bits are
            compared.
        plain_agreement: How far loss and gradients are from those of `none` of the same engine, the
            same program without a checkpoint; null for that row, without it, and where bits are
            compared.
        counterpart: In what the strategy is another thing in this library, for people; null where
            it is the same.
        compile_s: Tracing and compiling, in no sample, seconds; null if nothing is compiled.
        compiled: What the compiled program takes; null if nothing is compiled.
        passes: The samples whole.
        trace: The memory pass as it went; null where nobody tells.
        ratios: Times against the reference's, by phase; null for the reference.
        engine_ratios: Times against those of `none` of the same engine, by phase; null where that
            is the reference, or is not there.
        own_ratio: Total time against ckpt's under the same strategy; null without one.
        judgement: The word on it; null for the reference.
    """

    strategy: str
    device: str
    reference: bool
    memory: Memory | None = field(metadata=FLAT)
    outcome: Outcome | None = field(metadata=FLAT)
    cost: Cost | None = field(metadata=FLAT)
    passes: Passes
    trace: Trace | None
    engine: str = OURS
    library: str = ""
    threads: Positive | None = None
    reason: str | None = None
    failed: bool = False
    regions: Sequence[Sequence[str]] = ()
    point: dict[str, float] = field(default_factory=dict)
    agreement: Agreement | None = None
    plain_agreement: Agreement | None = None
    counterpart: str | None = None
    compile_s: Seconds | None = None
    compiled: Compiled | None = None
    times: dict[str, Estimate] | None = field(default=None, metadata=HIDDEN)
    ratios: dict[str, Ratio] | None = field(default=None, metadata=DERIVED)
    engine_ratios: dict[str, Ratio] | None = field(default=None, metadata=DERIVED)
    own_ratio: Ratio | None = field(default=None, metadata=DERIVED)
    judgement: Judgement | None = field(default=None, metadata=DERIVED)

    @property
    @derived
    def forward_s(self) -> Times:
        """Forward passes; no samples where both phases are one program."""
        return self._times("forward")

    @property
    @derived
    def backward_s(self) -> Times:
        """Backward passes; no samples where both phases are one program."""
        return self._times("backward")

    @property
    @derived
    def step_s(self) -> Times | None:
        """The optimizer's step; null where there is none."""
        return self._times("step") if self.seconds("step") else None

    @property
    @derived
    def total_s(self) -> Times:
        """All phases together."""
        return self._times("total")

    @property
    def name(self) -> str:
        """How tables and warnings call it: the strategy, of another engine the engine too."""
        return self.strategy if self.engine == OURS else f"{self.engine} {self.strategy}"

    @property
    def key(self) -> tuple[str, str]:
        """What a run of one program has once."""
        return self.engine, self.strategy

    @property
    def identity(self) -> Identity:
        """What a run has once."""
        return self.engine, self.strategy, tuple(self.point.items())

    @property
    def samples(self) -> Sequence[Sample]:
        """The counted samples."""
        return self.passes.counted

    @property
    def peak_bytes(self) -> int | None:
        """The peak of the pass; None if not known."""
        return None if self.memory is None else self.memory.peak_bytes

    @property
    def saved_bytes(self) -> int | None:
        """What is held for backward; None if not known."""
        return None if self.memory is None else self.memory.saved_bytes

    @property
    def recomputed_nodes(self) -> int | None:
        """How many values are computed again; None if not known."""
        return None if self.outcome is None else self.outcome.recomputed_nodes

    @property
    def is_wrong(self) -> bool:
        """Whether its gradient, or its loss, is not what it has to be."""
        disagrees = self.agreement is not None and not self.agreement.agrees
        return disagrees or (self.judgement is not None and self.judgement.word == "wrong")

    def seconds(self, phase: str) -> list[float]:
        """The counted samples of a phase; empty where it is not timed apart."""
        figures = [getattr(sample, f"{phase}_s") for sample in self.samples]
        return [] if None in figures else figures

    def estimate(self, phase: str) -> Estimate | None:
        """The median of a phase and its interval; None where there is none."""
        return None if self.times is None else self.times.get(phase)

    def median_s(self, phase: str) -> float | None:
        """The median of a phase; None where there is none."""
        known = self.estimate(phase)
        return None if known is None else known.median

    def _times(self, phase: str) -> Times:
        known, samples = self.estimate(phase), self.seconds(phase)
        if known is None:
            return Times(None, None, None, None, None, None, samples)
        return Times(
            known.median, known.low, known.high, known.iqr_share, known.least, known.most, samples
        )
