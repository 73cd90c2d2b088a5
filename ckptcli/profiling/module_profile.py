"""A PyTorch module of the user's own: without checkpoints, and under each strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import ProgramError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.machine import read_machine
from ckptcli.measure.origin import Origin, read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.resident import resident_rise_bytes
from ckptcli.measure.rounds import Plan, Rounds, run_rounds
from ckptcli.measure.row import Row
from ckptcli.measure.stability import read_load, stability_warnings
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Engine, NoPeer, Values
from ckptcli.profiling.divergence import loss_warning
from ckptcli.profiling.rows import empty_row, outcome_of, passes_of, without_figures
from ckptcli.version import VERSION

if TYPE_CHECKING:
    from ckptcli.peers.torch_blocks import Blocks
    from ckptcli.peers.torch_module import ModuleNetwork, UserModule

REFERENCE = "none"
_MOVED = (
    "{}: buffer `{}` differs from that of `none` after one pass: recomputing its module moves "
    "it a second time"
)


def profile_module(
    text: str,
    strategies: Sequence[Strategy],
    engine: Engine,
    plan: Plan,
    threshold: float,
    tell: Callable[[str, int, int], None],
    wanted: str | None = None,
    config: dict[str, object] | None = None,
    command: Sequence[str] = (),
    finished: Callable[[RunRecord], None] | None = None,
) -> RunRecord:
    """Profile the module that `FILE.py:MAKE` makes; `engine` is PyTorch's, and imported.

    `wanted` says which parts are its blocks, as `blocks_of` has it.

    The first strategy is `none`, which the others are compared with. One that has no counterpart,
    or under which the module fails, has a row with the reason. `finished` gets the record so far
    after each complete round, marked partial.

    Raises:
        UsageError: no module with an input on the CPU.
        ProgramError: the module fails, or does something else each time.
    """
    from ckptcli.peers.torch_module import SMALLER, check_is_on_cpu, load_module
    from ckptcli.peers.torch_trial import tried

    before = read_load()
    origin = read_origin(command)
    plain = load_module(text, plan.seed)
    check_is_on_cpu(plain)
    blocks = tried(plain, plan.seed, wanted)
    job = _Job(plain, blocks, engine, plan, threshold, config or {}, origin)
    passes = [job.opened(strategy) for strategy in strategies]
    passes = [_first_pass(this, passes[0]) for this in passes]
    job.notes = [
        *_lints(strategies, passes, blocks),
        *(text for this in passes for text in _divergence(this)),
        *_moved(passes),
    ]
    with running(text, SMALLER):
        rounds = job.measured(passes, tell, finished)
    record = job.record(passes, rounds, rounds.interrupted)
    waiting = engine.waits_for_threads and engine.threads != 1
    doubts = stability_warnings(record, before, "PyTorch" if waiting else None)
    return replace(record, warnings=(*record.warnings, *doubts))


@dataclass(slots=True)
class _Pass:
    """One strategy: its network, and the row so far. No network, no figures."""

    row: Row
    network: ModuleNetwork | None = None
    values: Values | None = None

    def measure(self, reference: _Pass) -> None:
        """Fill in what one pass holds, and how far its values are from the reference's."""
        from ckptcli.peers.torch_ledger import ledger_pass

        network = self.network
        if network is None or self.values is None or reference.values is None:
            return
        result = network.backward(network.forward())
        watched = ledger_pass(network.forward, network.backward, network.user.own_tensors())
        self.row = replace(
            self.row,
            memory=replace(watched.memory, process_peak_bytes=resident_rise_bytes(network)),
            outcome=outcome_of(self.values, network.check(result), None),
            agreement=agreement(
                reference.values, self.values, network.dtype, TOLERANCES[network.dtype], REFERENCE
            ),
        )

    def finished(self, rounds: Rounds) -> Row:
        """The row with the samples of the rounds."""
        return replace(self.row, passes=passes_of(rounds, self.row.strategy))


@dataclass(slots=True)
class _Job:
    """What every strategy is opened with; `plain` is the module without checkpoints."""

    plain: UserModule
    blocks: Blocks
    engine: Engine
    plan: Plan
    threshold: float
    config: dict[str, object]
    origin: Origin
    notes: Sequence[str] = ()

    def measured(
        self,
        passes: Sequence[_Pass],
        tell: Callable[[str, int, int], None],
        finished: Callable[[RunRecord], None] | None,
    ) -> Rounds:
        """One watched pass of each, then the rounds."""
        for done, this in enumerate(passes):
            tell("memory", done, len(passes))
            this.measure(passes[0])
        return run_rounds(
            {this.row.strategy: this.network for this in passes if this.network is not None},
            self.plan,
            reference=REFERENCE,
            between=lambda done, most: tell("timing", done, most),
            finished=None
            if finished is None
            else lambda rounds: finished(self.record(passes, rounds, True)),
        )

    def record(self, passes: Sequence[_Pass], rounds: Rounds, partial: bool) -> RunRecord:
        """The record with the samples of the rounds."""
        return analysed(
            RunRecord(
                workload={
                    "name": "module",
                    "title": self.plain.title,
                    "module": self.plain.text,
                    "has_caller": self.blocks.can_group,
                },
                device="Torch(Cpu)",
                machine=read_machine(),
                version=VERSION,
                seed=self.plan.seed,
                processes=1,
                threshold=self.threshold,
                stopped=rounds.stopped,
                partial=partial,
                config=self.config,
                warnings=tuple(self.notes),
                rows=tuple(this.finished(rounds) for this in passes),
                library=self.engine.version,
                children=tuple(self.blocks.paths),
                origin=self.origin,
            )
        )

    def opened(self, strategy: Strategy) -> _Pass:
        """The strategy's network, or the reason why it has none."""
        from ckptcli.peers.torch_module import ModuleNetwork

        row = empty_row(self.engine, strategy)
        if strategy.name == REFERENCE:
            return _Pass(row, ModuleNetwork(self.plain, self.plan.seed))
        try:
            return self._checkpointed(row, strategy)
        except NoPeer as reason:
            return _Pass(without_figures(row, str(reason)))

    def _checkpointed(self, row: Row, strategy: Strategy) -> _Pass:
        from ckptcli.peers.torch_blocks import in_another
        from ckptcli.peers.torch_module import ModuleNetwork, another
        from ckptcli.peers.torch_regions import checkpoint_regions, module_regions

        module_regions(self.blocks, strategy)  # before another module is made
        user = another(self.plain, self.plan.seed)
        regions = module_regions(in_another(self.blocks, user.module), strategy)
        checkpoint_regions(regions)
        paths = tuple(region.paths for region in regions if region.policy is not None)
        return _Pass(replace(row, regions=paths), ModuleNetwork(user, self.plan.seed))


def _first_pass(this: _Pass, reference: _Pass) -> _Pass:
    """One pass for its values; where it fails with checkpoints alone, the reason.

    Raises:
        ProgramError: it fails without.
    """
    from ckptcli.peers.torch_module import SMALLER
    from ckptcli.peers.torch_trial import why_not_again

    network = this.network
    if network is None:
        return this
    try:
        with running(network.user.text, SMALLER):
            this.values = network.values(network.backward(network.forward()))
    except ProgramError as error:
        if this is reference:
            raise
        reason = why_not_again(error)
        return _Pass(replace(without_figures(this.row, reason), failed=True))
    return this


def _divergence(this: _Pass) -> Iterator[str]:
    """A warning about a loss, and one about gradients, that are not finite."""
    name, network, found = this.row.strategy, this.network, this.values
    if network is None or found is None:
        return
    text = loss_warning(name, found.loss)
    if text is not None:
        yield text
    paths = [
        path
        for path, gradient in zip(network.user.parameter_names(), found.gradients)
        if not np.isfinite(gradient).all()
    ]
    if paths:
        count = f"{len(paths)} of {len(found.gradients)} gradients"
        yield f"{name}: {count} are not finite, among them that of `{paths[0]}`"


def _moved(passes: Sequence[_Pass]) -> Iterator[str]:
    """The buffers that recomputation moves, after one pass of each."""
    from ckptcli.peers.torch_module import changed_buffers

    plain, *others = passes
    assert plain.network is not None
    for other in others:
        if other.network is not None:
            for name in changed_buffers(plain.network.user, other.network.user):
                yield _MOVED.format(other.row.strategy, name)


def _lints(
    strategies: Sequence[Strategy], passes: Sequence[_Pass], blocks: Blocks
) -> Iterator[str]:
    for strategy, this in zip(strategies, passes):
        if this.network is not None:
            for text in strategy.lints(len(blocks.parts)):
                yield f"{strategy.name}: {text}"
