"""A PyTorch module of the user's own: without checkpoints, and with one a child."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ckptcli.checkpoint.user_code import running
from ckptcli.measure.analysis import analysed_rows
from ckptcli.measure.machine import read_machine
from ckptcli.measure.module_record import ModuleRecord
from ckptcli.measure.peer_record import PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.rounds import Plan, Rounds, run_rounds
from ckptcli.measure.stability import read_load, row_warnings
from ckptcli.peers.agreement import agreement
from ckptcli.peers.base import Engine, Values
from ckptcli.version import VERSION

if TYPE_CHECKING:
    from ckptcli.peers.torch_module import ModuleNetwork

NAMES = ("none", "remat")
_MOVED = (
    "remat: buffer `{}` differs from that of `none` after one pass: recomputing its module moves "
    "it a second time"
)


def profile_module(
    text: str, engine: Engine, plan: Plan, threshold: float, tell: Callable[[str, int, int], None]
) -> ModuleRecord:
    """Profile the module that `FILE.py:MAKE` makes; `engine` is PyTorch's, and imported.

    Raises:
        UsageError: no module with an input, or one without children.
        ProgramError: the module fails; names the line.
    """
    from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, changed_buffers, pair

    before = read_load()
    plain, other, regions = pair(text, plan.seed)
    networks = {name: ModuleNetwork(u, plan.seed) for name, u in zip(NAMES, (plain, other))}
    with running(text, SMALLER):
        values = {name: n.values(n.backward(n.forward())) for name, n in networks.items()}
        moved = changed_buffers(plain, other)
        rows = []
        for done, (name, network) in enumerate(networks.items()):
            tell("memory", done, len(networks))
            rows.append(_row(name, engine, network, values["none"], values[name]))
        rounds = run_rounds(
            networks, plan, reference="none", between=lambda done, most: tell("timing", done, most)
        )
    machine = read_machine()
    timed = analysed_rows([_timed(row, rounds) for row in rows], threshold)
    return ModuleRecord(
        title=plain.title,
        parameters_bytes=_bytes(plain.state()),
        input_bytes=_bytes(plain.input_tensors()),
        regions=tuple(regions),
        machine=machine,
        version=VERSION,
        seed=plan.seed,
        threshold=threshold,
        stopped=rounds.stopped,
        partial=rounds.interrupted,
        warnings=(*map(_MOVED.format, moved), *row_warnings(timed, machine, before)),
        rows=timed,
    )


def _row(
    name: str, engine: Engine, network: ModuleNetwork, expected: Values, found: Values
) -> PeerRecord:
    from ckptcli.peers.torch_ledger import ledger_pass

    held = ledger_pass(network.forward, network.backward, network.user.own_tensors())
    return PeerRecord(
        engine.name,
        name,
        engine.version,
        engine.threads,
        memory=PeerMemory(held.saved_bytes, held.saved_tensors, held.peak_bytes, None),
        agreement=agreement(expected, found, network.dtype),
    )


def _timed(row: PeerRecord, rounds: Rounds) -> PeerRecord:
    taken = [PeerSample.of(sample, splits=True) for sample in rounds.samples[row.strategy]]
    return replace(row, warmup=tuple(taken[: rounds.warmup]), samples=tuple(taken[rounds.warmup :]))


def _bytes(tensors: Iterable[Any]) -> int:
    """Of their storages, each once."""
    storages = {tensor.untyped_storage()._cdata: tensor for tensor in tensors}
    return sum(int(tensor.untyped_storage().nbytes()) for tensor in storages.values())
