"""Timing: every strategy once a round, the order reversed every other round.

Machines drift; strategies timed one after the other differ by the drift. Interleaved, they share
it (`docs/architecture.md`). A sample is one forward and one backward pass, timed apart, with the
garbage collector off; it is collected between rounds.

Invariant: only complete rounds count; an interrupted round leaves no sample.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

Clock = Callable[[], float]
"""Seconds from an arbitrary start."""


class Subject(Protocol):
    """What is timed. `backward` gets what `forward` returned, `check` what `backward` returned."""

    def forward(self) -> Any: ...

    def backward(self, state: Any) -> Any: ...

    def check(self, result: Any) -> float | None:
        """A figure of the result to show beside the times; not timed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pass: seconds for each phase, and the checked figure."""

    forward_s: float
    backward_s: float
    check: float | None

    @property
    def total_s(self) -> float:
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class Rounds:
    """Samples by subject; the first `warmup` of each are not to be counted."""

    samples: dict[str, list[Sample]]
    warmup: int
    interrupted: bool

    def counted(self, name: str) -> list[Sample]:
        """The samples after warm-up."""
        return self.samples[name][self.warmup :]


def run_rounds(
    subjects: Mapping[str, Subject],
    *,
    reps: int,
    warmup: int = 1,
    clock: Clock = time.perf_counter,
    between: Callable[[int, int], None] | None = None,
) -> Rounds:
    """Time each subject `warmup + reps` times, in rounds.

    `between(done, total)` is called before each round, outside every sample. Ctrl-C ends the
    measurement with the rounds that are complete.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in subjects}
    names = list(subjects)
    total = warmup + reps
    try:
        with _collector_off():
            for done in range(total):
                if between is not None:
                    between(done, total)
                gc.collect()
                order = names if done % 2 == 0 else names[::-1]
                finished = {name: _sample(subjects[name], clock) for name in order}
                for name, sample in finished.items():
                    samples[name].append(sample)
    except KeyboardInterrupt:
        return Rounds(samples, warmup, interrupted=True)
    return Rounds(samples, warmup, interrupted=False)


def _sample(subject: Subject, clock: Clock) -> Sample:
    start_s = clock()
    state = subject.forward()
    middle_s = clock()
    result = subject.backward(state)
    end_s = clock()
    return Sample(middle_s - start_s, end_s - middle_s, subject.check(result))


@contextmanager
def _collector_off() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
