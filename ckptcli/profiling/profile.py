"""`profile`: the main job. Composes workload, engine, ledger and clock into a record."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

from ckptcli.autodiff.device import Device, device as open_device
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import OutOfMemoryError, UntrackedBackwardWarning
from ckptcli.measure.machine import available_bytes, read_machine
from ckptcli.measure.record import Memory, Outcome, RunRecord, StrategyRecord
from ckptcli.measure.rounds import Rounds, run_rounds
from ckptcli.profiling.memory_pass import memory_pass, tracemalloc_is_exact
from ckptcli.profiling.timed_pass import TimedPass
from ckptcli.units import size
from ckptcli.version import VERSION
from ckptcli.workloads.base import Workload

Progress = Callable[[str, int, int], None]
"""Told a phase, and how many of how many steps are done; never during a timed sample."""


def profile(
    workload: Workload,
    strategies: Sequence[Strategy],
    *,
    reference: str | None = None,
    backend: str = "numpy",
    reps: int = 10,
    warmup: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> RunRecord:
    """Profile `workload` under each strategy.

    `reference` names the strategy that was added only to compare with. Ctrl-C during the timed
    rounds gives a record with the rounds that are complete, marked partial.
    """
    device = open_device(backend)
    tell = progress or _silent
    traced = tracemalloc_is_exact()
    with device.backend.quiet(), warnings.catch_warnings():
        passes, notes = _memory_passes(workload, device, strategies, traced, tell)
        warnings.simplefilter("ignore", UntrackedBackwardWarning)
        rounds = run_rounds(
            {strategy.name: TimedPass(workload, device, strategy) for strategy in strategies},
            reps=reps,
            warmup=warmup,
            between=lambda done, total: tell("timing", done, total),
        )
    if not traced:
        notes.append("this NumPy misreports to tracemalloc: peaks are without kernel temporaries")
    return RunRecord(
        workload=workload.settings,
        title=workload.title,
        backend=device.backend.label,
        machine=read_machine(),
        version=VERSION,
        seed=seed,
        reps=reps,
        warnings=(*notes, *_warnings(strategies, passes, rounds)),
        partial=rounds.interrupted,
        strategies=tuple(
            _strategy_record(strategy, device, reference, measured, rounds)
            for strategy, measured in zip(strategies, passes)
        ),
    )


def _strategy_record(
    strategy: Strategy,
    device: Device,
    reference: str | None,
    measured: tuple[Memory, Outcome],
    rounds: Rounds,
) -> StrategyRecord:
    memory, outcome = measured
    return StrategyRecord(
        strategy=strategy.name,
        device=repr(device.autodiff().gradient_checkpointing(strategy)),
        reference=strategy.name == reference,
        memory=memory,
        outcome=outcome,
        warmup=tuple(rounds.samples[strategy.name][: rounds.warmup]),
        samples=tuple(rounds.counted(strategy.name)),
    )


def check_fits(workload: Workload, strategies: Sequence[Strategy]) -> None:
    """Refuse a workload that needs more memory than there is, before anything is allocated.

    Raises:
        OutOfMemoryError: with the bytes it needs and the bytes there are.
    """
    needed_bytes = workload.needed_bytes([strategy.name for strategy in strategies])
    free_bytes = available_bytes()
    if free_bytes is not None and needed_bytes > free_bytes:
        raise OutOfMemoryError(
            f"{workload.title} needs at least {size(needed_bytes)} ({needed_bytes} bytes), "
            f"{size(free_bytes)} ({free_bytes} bytes) are available",
            "use a smaller --n, --batch or --layers, or --force to try all the same",
        )


def _silent(phase: str, done: int, total: int) -> None:
    del phase, done, total


def _memory_passes(
    workload: Workload,
    device: Device,
    strategies: Sequence[Strategy],
    traced: bool,
    tell: Progress,
) -> tuple[list[tuple[Memory, Outcome]], list[str]]:
    """Memory and outcome of each strategy, and what the engine warned of, each once."""
    passes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UntrackedBackwardWarning)
        for done, strategy in enumerate(strategies):
            tell("memory", done, len(strategies))
            passes.append(memory_pass(workload, device, strategy, traced))
    return passes, list(dict.fromkeys(str(warning.message) for warning in caught))


def _warnings(
    strategies: Sequence[Strategy], passes: Sequence[tuple[Memory, Outcome]], rounds: Rounds
) -> list[str]:
    """What a reader of the figures has to know."""
    notes = []
    for strategy, (_, outcome) in zip(strategies, passes):
        if not math.isfinite(outcome.loss):
            notes.append(
                f"{strategy.name}: the loss is {outcome.loss}: times and memory are those of a "
                "network that has diverged; use fewer layers or another seed"
            )
    if len({outcome.grad_sha256 for _, outcome in passes}) > 1:
        notes.append("the gradients differ between strategies: a defect, do not trust this run")
    if rounds.interrupted:
        done = len(rounds.counted(strategies[0].name))
        notes.append(f"interrupted: the figures are partial, from {done} complete rounds")
    return notes
