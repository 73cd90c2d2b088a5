"""A PyTorch module of the user's own: without checkpoints, and with one a child."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.measure.analysis import analysed_rows
from ckptcli.measure.machine import read_machine
from ckptcli.measure.module_record import ModuleRecord
from ckptcli.measure.peer_record import PeerMemory, PeerRecord, PeerSample
from ckptcli.measure.rounds import Plan, Rounds, run_rounds
from ckptcli.measure.stability import read_load, row_warnings
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Engine, Values
from ckptcli.profiling.divergence import loss_warning
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
        warnings=(
            *(text for name in NAMES for text in _divergence(name, networks[name], values[name])),
            *map(_MOVED.format, moved),
            *row_warnings(timed, machine, before),
        ),
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
        agreement=agreement(expected, found, network.dtype, TOLERANCES[network.dtype]),
    )


def _divergence(name: str, network: ModuleNetwork, found: Values) -> Iterator[str]:
    """A warning about a loss, and one about gradients, that are not finite."""
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


def _timed(row: PeerRecord, rounds: Rounds) -> PeerRecord:
    taken = [PeerSample.of(sample, splits=True) for sample in rounds.samples[row.strategy]]
    return replace(row, warmup=tuple(taken[: rounds.warmup]), samples=tuple(taken[rounds.warmup :]))


def _bytes(tensors: Iterable[Any]) -> int:
    """Of their storages, each once."""
    from ckptcli.peers.torch_storages import storage_key, storages

    found = (storage for tensor in tensors for storage in storages(tensor))
    return sum(int(s.nbytes()) for s in {storage_key(s): s for s in found}.values())
