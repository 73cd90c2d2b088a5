"""Timing: every strategy once a round, the order reversed every other round.

Machines drift; strategies timed one after the other differ by the drift. Interleaved, they share
it (`docs/statistics.md`). A sample is one forward and one backward pass, timed apart, with the
garbage collector off; it is collected between rounds. A pass that is shorter than a clock can be
trusted with is repeated inside the sample: as often as the shortest one so far needs, in every
strategy alike. A pass of what is trained has micro-batches, and a step that is timed apart.

Invariant: only complete rounds count; an interrupted round leaves no sample.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ckptcli.measure.fields import Count, Positive, Seconds, derived
from ckptcli.measure.statistics import median_interval, paired_ratio
from ckptcli.measure.subject import Subject, micro_batches_of, step_of
from ckptcli.units import count

Clock = Callable[[], float]
"""Seconds from an arbitrary start."""

SHORTEST_SAMPLE_S = 0.010
LOOKS = (9, 17, 25, 49)
"""Round counts after which a run may stop; their interval's level lies just above 95 %."""

WIDEST_HALF_WIDTH = 0.01


@dataclass(frozen=True, slots=True)
class Sample:
    """One pass in one round; the mean of `repeats` passes.

    Attributes:
        forward_s: Forward pass, seconds; null where both phases are one program.
        backward_s: Backward pass, seconds; null where both phases are one program.
        check: A figure of the result, the sum of the first weight's gradient; null if there is none
            or it is not finite.
        repeats: How many passes the sample is the mean of.
        collected: Whether the garbage collector ran inside all the same.
        process: Which of several measuring processes took it, from 0.
        whole_s: The one program, seconds; null where the phases are timed apart.
        step_s: The optimizer's step, seconds; null where there is none.
    """

    forward_s: Seconds | None
    backward_s: Seconds | None
    check: float | None = None
    repeats: Positive = 1
    collected: bool = False
    process: Count = 0
    whole_s: Seconds | None = None
    step_s: Seconds | None = None

    @property
    @derived
    def total_s(self) -> Seconds:
        """All phases, seconds."""
        if self.whole_s is not None:
            return self.whole_s
        return (self.forward_s or 0.0) + (self.backward_s or 0.0) + (self.step_s or 0.0)

    def unsplit(self) -> Sample:
        """The same of a program that has no phases."""
        return replace(self, forward_s=None, backward_s=None, step_s=None, whole_s=self.total_s)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure.

    Attributes:
        reps: this many counted rounds; None looks after 9, 17, 25 and 49, 0 times nothing.
        warmup: rounds before them, never counted.
        max_time_s: without `reps`, no new round begins after this many seconds and `least` rounds.
        least: without `reps`, at least this many rounds: fewer give no verdict.
        seed: decides the order of the first round.
    """

    reps: int | None = None
    warmup: int = 1
    max_time_s: float = 10.0
    seed: int = 0
    least: int = LOOKS[0]

    @property
    def most(self) -> int:
        """The largest number of counted rounds."""
        return LOOKS[-1] if self.reps is None else self.reps

    @property
    def is_timed(self) -> bool:
        """Whether there are any rounds; without them memory is all that is measured."""
        return self.most > 0


@dataclass(frozen=True, slots=True)
class Rounds:
    """Samples by subject; the first `warmup` of each are not to be counted."""

    samples: dict[str, list[Sample]]
    warmup: int
    stopped: str
    interrupted: bool = False

    def counted(self, name: str) -> list[Sample]:
        """The samples after warm-up."""
        return self.samples[name][self.warmup :]


def run_rounds(
    subjects: Mapping[str, Subject],
    plan: Plan,
    *,
    reference: str | None = None,
    clock: Clock = time.perf_counter,
    between: Callable[[int, int], None] | None = None,
    finished: Callable[[Rounds], None] | None = None,
) -> Rounds:
    """Time each subject in rounds, as `plan` says.

    Ratios are taken against `reference`, by default the first subject. `between(done, most)` is
    called before each round and `finished` with all complete rounds after each, both outside every
    sample. Ctrl-C ends the measurement with the rounds that are complete.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in subjects}
    if not plan.is_timed:
        return Rounds(samples, 0, "no times, as asked")
    order = list(subjects)
    random.Random(plan.seed).shuffle(order)
    base = next(iter(subjects)) if reference is None else reference
    start_s = clock()
    stopped = None
    try:
        with collector_off():
            repeats = 1
            while stopped is None:
                done = len(samples[base]) - plan.warmup
                if between is not None:
                    between(done, plan.most)
                gc.collect()
                taken = _once(subjects, order if done % 2 == 0 else order[::-1], clock, repeats)
                for name, sample in taken.items():
                    samples[name].append(sample)
                repeats = max(repeats, _repeats_for(taken))
                rounds = Rounds(samples, plan.warmup, "")
                if finished is not None:
                    finished(rounds)
                stopped = _reason_to_stop(rounds, plan, base, clock() - start_s)
    except KeyboardInterrupt as stop:
        complete = min(len(taken) for taken in samples.values())
        kept = {name: taken[:complete] for name, taken in samples.items()}
        return Rounds(kept, plan.warmup, str(stop) or "interrupted", interrupted=True)
    return replace(rounds, stopped=stopped)


def _reason_to_stop(rounds: Rounds, plan: Plan, base: str, elapsed_s: float) -> str | None:
    """Why no further round is needed; None if one is."""
    done = len(rounds.counted(base))
    if plan.reps is not None:
        return f"{count(done, 'round')}, as asked" if done >= plan.reps else None
    if done in LOOKS and done >= plan.least and _narrow_enough(rounds, base):
        return f"every interval within 1 % after {done} rounds"
    if done >= LOOKS[-1]:
        return f"{done} rounds, the most"
    if done >= plan.least and elapsed_s >= plan.max_time_s:
        return f"--max-time {plan.max_time_s:g} s after {done} rounds"
    return None


def _narrow_enough(rounds: Rounds, base: str) -> bool:
    """Whether the 95 % half-width is at most 1 %: of every ratio, or of the only median."""
    totals = {name: [s.total_s for s in rounds.counted(name)] for name in rounds.samples}
    others = [name for name in totals if name != base]
    if not others:
        low, high = median_interval(totals[base]) or (0.0, math.inf)
        return (high - low) / (high + low) <= WIDEST_HALF_WIDTH
    ratios = [paired_ratio(totals[name], totals[base]) for name in others]
    return all(ratio.half_width <= WIDEST_HALF_WIDTH for ratio in ratios)


def _once(
    subjects: Mapping[str, Subject], order: Sequence[str], clock: Clock, repeats: int
) -> dict[str, Sample]:
    """One round: a sample of each subject, taken in this order."""
    return {name: _sample(subjects[name], clock, repeats) for name in order}


def _repeats_for(taken: Mapping[str, Sample]) -> int:
    """How often to repeat a pass inside a sample: the same for all, by the shortest."""
    shortest_s = min(sample.total_s for sample in taken.values())
    return max(1, math.ceil(SHORTEST_SAMPLE_S / max(shortest_s, 1e-9)))


def _sample(subject: Subject, clock: Clock, repeats: int) -> Sample:
    seconds = _Seconds()
    collections = _collections()
    result = None
    for _ in range(repeats):
        result = None  # the last pass's gradients are freed before the next one starts
        result = _timed_pass(subject, clock, seconds)
    return Sample(
        seconds.forward / repeats,
        seconds.backward / repeats,
        subject.check(result),
        repeats,
        collected=_collections() != collections,
        step_s=None if step_of(subject) is None else seconds.step / repeats,
    )


@dataclass(slots=True)
class _Seconds:
    """What the phases of passes took together."""

    forward: float = 0.0
    backward: float = 0.0
    step: float = 0.0


def _timed_pass(subject: Subject, clock: Clock, seconds: _Seconds) -> Any:
    """One pass with all its micro-batches and its step; what the last `backward` returned."""
    result = None
    for _ in range(micro_batches_of(subject)):
        start_s = clock()
        state = subject.forward()
        middle_s = clock()
        result = subject.backward(state)
        end_s = clock()
        seconds.forward += middle_s - start_s
        seconds.backward += end_s - middle_s
        del state
    training = step_of(subject)
    if training is not None:
        start_s = clock()
        training.step(result)
        seconds.step += clock() - start_s
        training.put_back()
    return result


def _collections() -> int:
    counts: Sequence[dict[str, int]] = gc.get_stats()
    return sum(generation["collections"] for generation in counts)


LEAST_OF_A_CALLER = 1000
"""Objects that a caller's `gc.freeze()` sets aside at least: an empty interpreter has 5,000. Python
3.12 itself sets immortal ones aside, 375 of them.
"""


@cache
def caller_has_frozen() -> bool:
    """Whether a caller has set objects aside; asked once: the answer walks through them all."""
    return gc.get_freeze_count() >= LEAST_OF_A_CALLER


@contextmanager
def collector_off() -> Iterator[None]:
    """Off inside; what exists already is set aside, so that a collection between costs little.

    What the caller has set aside stays so.
    """
    was_enabled, is_ours = gc.isenabled(), not caller_has_frozen()
    gc.disable()
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()
        if was_enabled:
            gc.enable()
