"""A clock that moves only when a subject runs, and subjects that move it by scripted times."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from ckptcli.measure.rounds import Plan, Rounds, run_rounds


class FakeClock:
    """Seconds since its start; only `advance` makes time pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, time_s: float) -> None:
        self.now_s += time_s


class FakeSubject:
    """A subject whose passes take scripted times, a quarter of each forward.

    Each call is written to `log`, which several subjects can share. `factor` is asked at each pass
    by how much the machine stretches it; `check_s` is what a check takes.
    """

    def __init__(
        self,
        name: str,
        clock: FakeClock,
        times_s: float | Iterable[float],
        *,
        factor: Callable[[], float] = lambda: 1.0,
        log: list[str] | None = None,
        check_s: float = 0.0,
    ) -> None:
        self.name = name
        self.clock = clock
        self.times_s = itertools.repeat(times_s) if isinstance(times_s, float) else iter(times_s)
        self.factor = factor
        self.log: list[str] = [] if log is None else log
        self.check_s = check_s
        self.passes = 0

    def forward(self) -> float:
        self.log.append(f"{self.name} forward")
        pass_s = next(self.times_s) * self.factor()
        self.clock.advance(pass_s * 0.25)
        return pass_s

    def backward(self, state: float) -> int:
        self.log.append(f"{self.name} backward")
        self.clock.advance(state * 0.75)
        self.passes += 1
        return self.passes

    def check(self, result: int) -> float | None:
        self.log.append(f"{self.name} check")
        self.clock.advance(self.check_s)
        return float(result)


class NoisyMachine:
    """Log-normal noise of 2 %, one pass in twenty hit by a spike, and a speed that wanders.

    The simulation of `docs/statistics.md`: a spike adds an exponential number of pass times, the
    drift is a random walk of 1 % a pass.
    """

    def __init__(self, seed: int, drift: float = 0.01) -> None:
        self.random = random.Random(seed)
        self.drift = drift
        self.log_speed = 0.0

    def __call__(self) -> float:
        self.log_speed += self.random.gauss(0.0, self.drift)
        noise = self.random.gauss(0.0, 0.02)
        spike = self.random.expovariate(1.0) if self.random.random() < 0.05 else 0.0
        return math.exp(self.log_speed + noise) * (1.0 + spike)


def timed(
    times_s: dict[str, float | Iterable[float]],
    plan: Plan,
    *,
    reference: str | None = None,
    factor: Callable[[], float] = lambda: 1.0,
    log: list[str] | None = None,
    check_s: float = 0.0,
    **callbacks: Any,
) -> Rounds:
    """Rounds of subjects with these scripts, on a clock of their own."""
    clock = FakeClock()
    subjects = {
        name: FakeSubject(name, clock, script, factor=factor, log=log, check_s=check_s)
        for name, script in times_s.items()
    }
    return run_rounds(subjects, plan, reference=reference, clock=clock, **callbacks)


def rounds_of(log: list[str], size: int) -> list[list[str]]:
    """Who was timed in each round, in order."""
    forwards = [line.split()[0] for line in log if line.endswith("forward")]
    return [forwards[start : start + size] for start in range(0, len(forwards), size)]


def totals(rounds: Rounds, name: str) -> list[float]:
    """The counted samples of one subject."""
    return [sample.total_s for sample in rounds.counted(name)]
