"""A PyTorch module of the user's own: without checkpoints, and under each strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import ProgramError
from ckptcli.measure.analysis import analysed_rows, judged_rows
from ckptcli.measure.machine import read_machine
from ckptcli.measure.module_record import ModuleRecord
from ckptcli.measure.peer_record import PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.rounds import Plan, Rounds, run_rounds
from ckptcli.measure.stability import read_load, row_warnings
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Engine, NoPeer, Values
from ckptcli.profiling.divergence import loss_warning
from ckptcli.version import VERSION

if TYPE_CHECKING:
    from ckptcli.peers.torch_module import ModuleNetwork, UserModule
    from ckptcli.peers.torch_regions import Children

REFERENCE = "none"
_MOVED = (
    "{}: buffer `{}` differs from that of `none` after one pass: recomputing its module moves "
    "it a second time"
)
_LARGER = "checkpoint larger blocks (-s remat:every=K)"
_BLOCKS = "checkpoint larger blocks: put layers into modules, each of which is one child"


def profile_module(
    text: str,
    strategies: Sequence[Strategy],
    engine: Engine,
    plan: Plan,
    threshold: float,
    tell: Callable[[str, int, int], None],
) -> ModuleRecord:
    """Profile the module that `FILE.py:MAKE` makes; `engine` is PyTorch's, and imported.

    The first strategy is `none`, which the others are compared with. One that has no counterpart,
    or under which the module fails, has a row with the reason.

    Raises:
        UsageError: no module with an input on the CPU.
        ProgramError: the module fails, or does something else each time.
    """
    from ckptcli.peers.torch_module import SMALLER, check_is_on_cpu, load_module
    from ckptcli.peers.torch_trial import tried

    before = read_load()
    plain = load_module(text, plan.seed)
    check_is_on_cpu(plain)
    children = tried(plain, plan.seed)
    job = _Job(plain, children, engine, plan.seed)
    passes = [job.opened(strategy) for strategy in strategies]
    passes = [_first_pass(this, passes[0], children) for this in passes]
    moved = list(_moved(passes))
    with running(text, SMALLER):
        rounds = _measured(passes, plan, tell)
    machine = read_machine()
    timed = analysed_rows([this.finished(rounds) for this in passes], threshold)
    groups = children.caller is not None and len(children.parts) > 1
    return ModuleRecord(
        title=plain.title,
        parameters_bytes=_bytes(plain.state()),
        input_bytes=_bytes(plain.input_tensors()),
        children=tuple(children.paths),
        regions={this.record.strategy: this.regions for this in passes},
        judgements=judged_rows(timed, _LARGER if groups else _BLOCKS),
        failed=tuple(this.record.strategy for this in passes if this.failed),
        machine=machine,
        version=VERSION,
        seed=plan.seed,
        threshold=threshold,
        stopped=rounds.stopped,
        partial=rounds.interrupted,
        warnings=(
            *_lints(strategies, passes, children),
            *(text for this in passes for text in _divergence(this)),
            *moved,
            *row_warnings(timed, machine, before),
        ),
        rows=timed,
    )


def _measured(passes: Sequence[_Pass], plan: Plan, tell: Callable[[str, int, int], None]) -> Rounds:
    """One watched pass of each, then the rounds."""
    for done, this in enumerate(passes):
        tell("memory", done, len(passes))
        this.measure(passes[0])
    return run_rounds(
        {this.record.strategy: this.network for this in passes if this.network is not None},
        plan,
        reference=REFERENCE,
        between=lambda done, most: tell("timing", done, most),
    )


@dataclass(slots=True)
class _Pass:
    """One strategy: its network, and the record so far. No network, no figures."""

    record: PeerRecord
    network: ModuleNetwork | None = None
    regions: tuple[tuple[str, ...], ...] = ()
    values: Values | None = None
    failed: bool = False

    def measure(self, reference: _Pass) -> None:
        """Fill in what one pass holds, and how far its values are from the reference's."""
        from ckptcli.peers.torch_ledger import ledger_pass

        network = self.network
        if network is None or self.values is None or reference.values is None:
            return
        held = ledger_pass(network.forward, network.backward, network.user.own_tensors())
        self.record = replace(
            self.record,
            memory=PeerMemory(held.saved_bytes, held.saved_tensors, held.peak_bytes, None),
            agreement=agreement(
                reference.values, self.values, network.dtype, TOLERANCES[network.dtype]
            ),
        )

    def finished(self, rounds: Rounds) -> PeerRecord:
        """The record with the samples of the rounds."""
        sampled = rounds.samples.get(self.record.strategy, ())
        taken = [PeerSample.of(sample, splits=True) for sample in sampled]
        first = rounds.warmup
        return replace(self.record, warmup=tuple(taken[:first]), samples=tuple(taken[first:]))


@dataclass(frozen=True, slots=True)
class _Job:
    """What every strategy is opened with; `plain` is the module without checkpoints."""

    plain: UserModule
    children: Children
    engine: Engine
    seed: int

    def opened(self, strategy: Strategy) -> _Pass:
        """The strategy's network, or the reason why it has none."""
        from ckptcli.peers.torch_module import ModuleNetwork

        engine = self.engine
        record = PeerRecord(engine.name, strategy.name, engine.version, engine.threads)
        if strategy.name == REFERENCE:
            return _Pass(record, ModuleNetwork(self.plain, self.seed))
        try:
            return self._checkpointed(record, strategy)
        except NoPeer as reason:
            return _Pass(replace(record, reason=str(reason)))

    def _checkpointed(self, record: PeerRecord, strategy: Strategy) -> _Pass:
        from ckptcli.peers.torch_module import ModuleNetwork, another
        from ckptcli.peers.torch_regions import (
            checkpoint_regions,
            children_of,
            module_regions,
            without_caller,
        )

        module_regions(self.children, strategy)  # before another module is made
        user = another(self.plain, self.seed)
        own = children_of(user.module)
        own = own if self.children.caller is not None else without_caller(own)
        regions = module_regions(own, strategy)
        checkpoint_regions(own, regions)
        paths = tuple(region.paths for region in regions if region.policy is not None)
        return _Pass(record, ModuleNetwork(user, self.seed), paths)


def _first_pass(this: _Pass, reference: _Pass, children: Children) -> _Pass:
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
        reason = why_not_again(error, children)
        return _Pass(replace(this.record, reason=reason), regions=this.regions, failed=True)
    return this


def _divergence(this: _Pass) -> Iterator[str]:
    """A warning about a loss, and one about gradients, that are not finite."""
    name, network, found = this.record.strategy, this.network, this.values
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
                yield _MOVED.format(other.record.strategy, name)


def _lints(
    strategies: Sequence[Strategy], passes: Sequence[_Pass], children: Children
) -> Iterator[str]:
    for strategy, this in zip(strategies, passes):
        if this.network is not None:
            for text in strategy.lints(len(children.parts)):
                yield f"{strategy.name}: {text}"


def _bytes(tensors: Iterable[Any]) -> int:
    """Of their storages, each once."""
    from ckptcli.peers.torch_storages import storage_key, storages

    found = (storage for tensor in tensors for storage in storages(tensor))
    return sum(int(s.nbytes()) for s in {storage_key(s): s for s in found}.values())
