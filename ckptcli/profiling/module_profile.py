"""A PyTorch module of the user's own: without checkpoints, and under each strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ckptcli import units
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.origin import read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.resident import resident_rise_bytes
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Row
from ckptcli.measure.stability import read_load, stability_warnings
from ckptcli.measure.subject import gradients_of
from ckptcli.peers.agreement import agreement
from ckptcli.peers.base import Engine, NoPeer, Values
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import OWN, ModuleStrategy
from ckptcli.profiling.own_program import REFERENCE, Finished, OwnRun, Tell, divergence
from ckptcli.profiling.rows import empty_row, outcome_of, without_figures
from ckptcli.units import count

if TYPE_CHECKING:
    from ckptcli.peers.torch_blocks import Blocks
    from ckptcli.peers.torch_memory import WatchedPass
    from ckptcli.peers.torch_module import ModuleNetwork, UserModule
    from ckptcli.peers.torch_trial import Trial

_MOVED = "{}: {} after one pass from `none`'s, {}: recomputing moves what a module keeps once more"
_ABOVE = (
    "{}: the peak is {} above what PyTorch's allocator tells of a pass that nothing watches: "
    "PyTorch computes the derivative of an op another way when it is watched"
)
_NEGLIGIBLE = 0.001
"""The share of a peak that is not told."""


def profile_module(
    request: ModuleRequest,
    strategies: Sequence[ModuleStrategy],
    engine: Engine,
    plan: Plan,
    threshold: float,
    tell: Tell,
    config: dict[str, object] | None = None,
    command: Sequence[str] = (),
    finished: Finished | None = None,
    limit_bytes: int | None = None,
) -> RunRecord:
    """Profile a module; `engine` is PyTorch's, and imported.

    The first strategy is `none`, which the others are compared with. One that has no counterpart,
    or under which the module fails, has a row with the reason. `finished` gets the record so far
    after each complete round, marked partial. A strategy whose peak is above the limit is left out.

    Raises:
        UsageError: no module with an input on the CPU.
        ProgramError: the module fails, or does something else each time.
        PassOutOfMemory: nothing fits in the limit.
    """
    from ckptcli.backends.torch_backend import TorchBackend
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_module import SMALLER
    from ckptcli.peers.torch_trial import tried

    before = read_load()
    origin = read_origin(command)
    plain = load_module(request, plan.seed)
    trial = tried(plain, plan.seed, request.blocks)
    blocks, backend = trial.blocks, TorchBackend(str(plain.device))
    strategies = [s for s in strategies if s.is_asked or s.name != OWN or trial.own_checkpoints]
    run = OwnRun(
        workload_of(plain, blocks),
        backend.label,
        engine.version,
        plan,
        threshold,
        config or {},
        origin,
        children=blocks.paths,
        clock=backend.clock(),
        limit_bytes=limit_bytes,
    )
    passes = [opened(strategy, plain, trial, engine, plan.seed) for strategy in strategies]
    passes = list(_compared(passes))
    run.notes = [
        *trial.notes(),
        *lints(strategies, passes, blocks),
        *(text for this in passes for text in this.divergence),
        *_moved(passes),
    ]
    with running(plain.text, SMALLER):
        rounds = run.measured(passes, tell, finished)
    record = run.record(passes, rounds, rounds.interrupted)
    waiting = engine.waits_for_threads and engine.threads != 1
    doubts = stability_warnings(record, before, "PyTorch" if waiting else None)
    return replace(record, warnings=(*record.warnings, *_above_allocator(record.rows), *doubts))


def _above_allocator(rows: Sequence[Row]) -> Iterator[str]:
    """The rows whose peak is higher for its being watched."""
    for row in rows:
        memory = row.memory
        excess = 0 if memory is None else memory.above_allocator_bytes
        if memory is not None and excess > _NEGLIGIBLE * (memory.ledger_peak_bytes or 0):
            yield _ABOVE.format(row.strategy, units.size(excess))


def workload_of(plain: UserModule, blocks: Blocks) -> dict[str, object]:
    """What a record says of the module."""
    return {
        "name": "module",
        "title": plain.title,
        "module": plain.text,
        "has_caller": blocks.can_group,
        **({} if plain.request.dtype is None else {"dtype": plain.request.dtype}),
    }


@dataclass(slots=True)
class ModulePass:
    """One strategy: its network, and the row so far. No network, no figures."""

    row: Row
    network: ModuleNetwork | None = None
    is_loop: bool = False
    """Whether blocks that the module's own loop calls are called together."""
    divergence: Sequence[str] = ()
    """What is not finite, in sentences, and what gradients are lost."""
    without_gradient: Sequence[str] = ()
    """Parameters, by path, and inputs that the loss does not depend on."""

    def measure(self) -> None:
        """Fill in what one pass holds."""
        from ckptcli.peers.torch_memory import module_pass

        if self.network is not None:
            watched = module_pass(self.network)
            on_host = self.network.user.device.type == "cpu"
            rise_bytes = resident_rise_bytes(self.network) if on_host else None
            memory = replace(watched.memory, process_peak_bytes=rise_bytes)
            self.row = with_watched(replace(self.row, memory=memory), watched)

    def hold_against(self, expected: Values | None) -> Values:
        """The values of one pass, held against these; for None against themselves."""
        from ckptcli.peers.torch_trial import without_gradient

        network = self.network
        assert network is not None
        result = gradients_of(network)
        values = network.values(result)
        names = network.user.parameter_names()
        self.without_gradient = without_gradient(names, result[1])
        self.divergence = tuple(divergence(self.row.strategy, values, names))
        self.row = replace(
            self.row,
            outcome=outcome_of(values, network.check(result), None),
            agreement=agreement(
                expected or values, values, network.dtype, network.tolerance, REFERENCE
            ),
        )
        return values


def with_watched(row: Row, watched: WatchedPass) -> Row:
    """The row with how its pass went, and what that computed again."""
    outcome = row.outcome
    if outcome is not None:
        outcome = replace(outcome, recomputed_by_op=watched.recomputed_by_op)
    return replace(row, outcome=outcome, trace=watched.trace, cost=watched.cost)


def opened(
    strategy: ModuleStrategy, plain: UserModule, trial: Trial, engine: Engine, seed: int
) -> ModulePass:
    """The strategy's network, or the reason why it has none."""
    from ckptcli.peers.torch_strategies import network_of

    row = empty_row(engine, strategy)
    try:
        found = network_of(strategy, plain, trial, seed)
    except NoPeer as reason:
        return ModulePass(without_figures(row, str(reason)))
    row = replace(
        row,
        regions=found.regions,
        counterpart=found.counterpart or None,
        compile_s=found.compile_s,
    )
    return ModulePass(row, found.network, is_loop=found.is_loop)


def _compared(passes: Sequence[ModulePass]) -> Iterator[ModulePass]:
    """One pass of each for its values, held against the first's, whose gradients alone are kept.

    Raises:
        ProgramError, OutputError: the first fails, or has no loss.
    """
    from ckptcli.peers.torch_module import SMALLER

    first, *others = passes
    assert first.network is not None
    with running(first.network.user.text, SMALLER):
        expected = first.hold_against(None)
    yield first
    for this in others:
        yield _held_against(this, first, expected)


def _held_against(this: ModulePass, first: ModulePass, expected: Values) -> ModulePass:
    """The strategy with its values compared; where it fails with checkpoints alone, or is another
    program, the reason.
    """
    from ckptcli.peers.torch_module import SMALLER
    from ckptcli.peers.torch_trial import lost_gradients, why_not_again

    if this.network is None:
        return this
    try:
        with running(this.network.user.text, SMALLER):
            this.hold_against(expected)
    except (ProgramError, OutputError) as error:
        row = without_figures(this.row, why_not_again(error, this.network.user))
        return ModulePass(replace(row, failed=isinstance(error, ProgramError)))
    lost = lost_gradients(this.without_gradient, first.without_gradient)
    if lost is not None:
        this.divergence = (*this.divergence, f"{this.row.strategy}: {lost}")
    another = _another_program(this, first)
    return this if another is None else ModulePass(without_figures(this.row, another))


def _another_program(this: ModulePass, first: ModulePass) -> str | None:
    """Why a row is not the first's program: a checkpoint changes no value of forward."""
    assert this.network is not None
    assert first.network is not None
    terms, expected = this.network.loss_terms, first.network.loss_terms
    if this.is_loop and (terms != expected or _loss(this) != _loss(first)):
        return (
            "the module's own loop uses what a block gives for something else too, so that blocks "
            "cannot be called together: use -s remat"
        )
    if terms != expected:
        return (
            f"the module gives {count(terms, 'tensor')} with it and {expected} without, so that "
            "the loss is another: a cache, perhaps, that checkpoints turn off; turn it off for all "
            "(config.use_cache = False), or give labels"
        )
    return None


def _loss(this: ModulePass) -> float | None:
    return None if this.row.outcome is None else this.row.outcome.loss


def _moved(passes: Sequence[ModulePass]) -> Iterator[str]:
    """The buffers that recomputation moves, after one pass of each."""
    from ckptcli.peers.torch_module import changed_buffers
    from ckptcli.peers.torch_trial import some

    plain, *others = passes
    assert plain.network is not None
    for other in others:
        if other.network is not None:
            names = changed_buffers(plain.network.user, other.network.user)
            if names:
                differ = f"{count(len(names), 'buffer')} differ{'s' if len(names) == 1 else ''}"
                yield _MOVED.format(other.row.strategy, differ, some(names))


def lints(
    strategies: Sequence[ModuleStrategy], passes: Sequence[ModulePass], blocks: Blocks
) -> Iterator[str]:
    """What strategies say of these blocks."""
    for strategy, this in zip(strategies, passes):
        if this.network is not None and strategy.grouping is not None:
            for text in strategy.grouping.lints(len(blocks.parts)):
                yield f"{strategy.name}: {text}"
