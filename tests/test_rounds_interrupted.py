"""The collector, interrupts, and what callers hear, around rounds under a fake clock."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ckptcli.measure.rounds import Plan, Rounds, run_rounds
from tests.fake_clock import FakeClock, FakeSubject, timed


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As it was, whatever a test does to it."""
    yield
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_off_inside_and_as_before_afterwards(enabled: bool) -> None:
    states: list[bool] = []

    def factor() -> float:
        states.append(gc.isenabled())
        return 1.0

    if not enabled:
        gc.disable()
    timed({"a": 0.1, "b": 0.1}, Plan(reps=3), factor=factor)
    assert states == [False] * 8
    assert gc.isenabled() == enabled


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_collector_is_restored_whatever_happens(error: type[BaseException]) -> None:
    def factor() -> float:
        raise error

    if error is RuntimeError:
        with pytest.raises(RuntimeError):
            timed({"a": 0.1}, Plan(reps=3), factor=factor)
    else:
        assert timed({"a": 0.1}, Plan(reps=3), factor=factor).interrupted
    assert gc.isenabled()


def test_garbage_is_collected_between_rounds_and_never_inside() -> None:
    log: list[str] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            log.append("collect")

    gc.callbacks.append(collected)
    try:
        rounds = timed({"a": 0.1, "b": 0.1}, Plan(reps=2), log=log)
    finally:
        gc.callbacks.remove(collected)
    assert [line for line in log if line == "collect" or line.endswith("forward")] == [
        *("collect", "b forward", "a forward"),
        *("collect", "a forward", "b forward"),
        *("collect", "b forward", "a forward"),
    ]
    assert not any(sample.collected for sample in rounds.samples["a"])


def test_a_collection_inside_a_sample_is_noted() -> None:
    passes = iter(range(100))

    def factor() -> float:
        if next(passes) == 3:
            gc.collect()
        return 1.0

    rounds = timed({"a": 0.1}, Plan(reps=4), factor=factor)
    assert [sample.collected for sample in rounds.samples["a"]] == [False] * 3 + [True, False]


@pytest.mark.parametrize("call", ["forward", "backward", "check"])
@pytest.mark.parametrize("at", range(12))
def test_an_interrupt_keeps_the_rounds_that_are_complete(call: str, at: int) -> None:
    """Ctrl-C in the call with number `at`: two calls a round, the first round is warm-up."""
    calls = iter(range(1000))

    class Stopped(FakeSubject):
        def stop(self, name: str) -> None:
            if name == call and next(calls) == at:
                raise KeyboardInterrupt

        def forward(self) -> float:
            self.stop("forward")
            return super().forward()

        def backward(self, state: float) -> int:
            self.stop("backward")
            return super().backward(state)

        def check(self, result: int) -> float | None:
            self.stop("check")
            return super().check(result)

    clock = FakeClock()
    subjects = {name: Stopped(name, clock, 0.1) for name in "ab"}
    rounds = run_rounds(subjects, Plan(reps=20), clock=clock)
    assert rounds.interrupted
    assert rounds.stopped == "interrupted"
    assert {len(samples) for samples in rounds.samples.values()} == {at // 2}
    assert {len(rounds.counted(name)) for name in "ab"} == {max(0, at // 2 - 1)}


def test_an_interrupt_says_why() -> None:
    def between(done: int, most: int) -> None:
        if done == 2:
            raise KeyboardInterrupt("timeout after 5 s")

    rounds = timed({"a": 0.1}, Plan(reps=9), between=between)
    assert (rounds.stopped, len(rounds.counted("a"))) == ("timeout after 5 s", 2)


class Trap(str):
    """A name at whose second look-up after `set` Ctrl-C arrives."""

    __slots__ = ("left",)

    def __hash__(self) -> int:
        left = getattr(self, "left", 0)
        if left:
            self.left = left - 1
            if left == 1:
                raise KeyboardInterrupt
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


@pytest.mark.parametrize("lookups", [1, 2])
@pytest.mark.parametrize("stopped_round", [3, 4])
def test_an_interrupt_while_a_round_is_written_down_leaves_no_half(
    stopped_round: int, lookups: int
) -> None:
    trap = Trap("b")

    class Trapped(FakeSubject):
        def check(self, result: int) -> float | None:
            if result == stopped_round:
                trap.left = lookups
            return super().check(result)

    clock = FakeClock()
    subjects = {"a": FakeSubject("a", clock, 0.1), trap: Trapped("b", clock, 0.1)}
    rounds = run_rounds(subjects, Plan(reps=9), clock=clock)
    assert rounds.interrupted
    assert {len(samples) for samples in rounds.samples.values()} == {stopped_round - 1}


def test_callers_hear_of_each_round_outside_every_sample() -> None:
    log: list[str] = []
    sizes: list[int] = []

    def between(done: int, most: int) -> None:
        log.append(f"between {done} {most}")

    def finished(rounds: Rounds) -> None:
        log.append("finished")
        assert not rounds.interrupted
        sizes.append(len(rounds.counted("a")))
        assert len(rounds.counted("a")) == len(rounds.counted("b"))

    timed({"a": 0.1, "b": 0.1}, Plan(reps=2), log=log, between=between, finished=finished)
    assert [line for line in log if line[0] not in "ab" or "between" in line] == [
        *("between -1 2", "finished", "between 0 2", "finished", "between 1 2", "finished"),
    ]
    assert sizes == [0, 1, 2]
    assert log.index("finished") == 7
