"""The peers of a profile: one untimed pass each, then subjects of the same rounds as ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UsageError
from ckptcli.measure.peer_record import PeerRecord, PeerSample
from ckptcli.measure.rounds import Rounds
from ckptcli.peers.agreement import TOLERANCES, agreement, share_apart
from ckptcli.peers.base import (
    Engine,
    NoPeer,
    PeerNetwork,
    Values,
    engines as known_engines,
    name_of,
    regions_of,
    workloads_of,
)
from ckptcli.workloads.base import Workload

ON_CPU = "(Cpu)"
"""How the label of a backend ends that computes on the CPU."""

MOVES = 3
"""How often the parameter is moved to see what rounding does."""

SPREADS = 10.0
"""How many times that a library may be away, which rounds in more places than one."""

WIDEST = 1e-3
"""The largest tolerance: beyond it a program is too ill-conditioned to agree with anything."""


@dataclass(frozen=True, slots=True)
class Own:
    """What ckpt computed itself, and how far rounding alone moves it, as a share."""

    values: Values
    spread: float

    def tolerance(self, network: PeerNetwork) -> float:
        """The network's, or wider where rounding goes further."""
        return max(network.tolerance, min(WIDEST, SPREADS * self.spread))


class PeerPass:
    """One strategy in one library: its network, and the record so far. No network, no peer."""

    def __init__(self, record: PeerRecord, network: PeerNetwork | None) -> None:
        self.record = record
        self.network = network

    @property
    def name(self) -> str:
        return self.record.name

    def finished(self, rounds: Rounds) -> PeerRecord:
        """The record with the samples of the rounds."""
        if self.network is None or self.name not in rounds.samples:
            return self.record
        splits = self.network.splits
        taken = [PeerSample.of(sample, splits) for sample in rounds.samples[self.name]]
        warmup = rounds.warmup
        return replace(self.record, warmup=tuple(taken[:warmup]), samples=tuple(taken[warmup:]))


def check_peers(engines: Sequence[Engine], workload: Workload, backend: Backend) -> None:
    """Refuse what only ckpt can run; the engines compute on the CPU.

    Raises:
        UsageError: engines, and a workload that one of them has no program of, a dtype without a
            tolerance, or a device that is not the CPU.
    """
    if not engines:
        return
    for engine in engines:
        _check_program(engine, workload)
    if (dtype := workload.settings["dtype"]) not in TOLERANCES:
        raise UsageError(
            f"engine `{engines[0].name}` is compared in {' or '.join(TOLERANCES)}, not in {dtype}",
            "use another --dtype",
        )
    if not backend.label.endswith(ON_CPU):
        raise UsageError(
            f"engine `{engines[0].name}` runs on the CPU, ckpt on {backend.label}: their times say "
            "nothing of each other",
            "use --device cpu",
        )


def _check_program(engine: Engine, workload: Workload) -> None:
    name, own = name_of(workload), workloads_of(engine)
    if name in own:
        return
    others = [other for other, kind in known_engines().items() if name in workloads_of(kind)]
    raise UsageError(
        f"engine `{engine.name}` runs the workload {' or '.join(own)}, not `{name}`",
        f"engines that run it: {', '.join(others)}"
        if others
        else "leave out --workload, or --engine: no engine runs it but ckpt's own",
    )


def disagreement(record: PeerRecord) -> str | None:
    """A sentence where loss or gradients are further from ckpt's than the tolerance."""
    known = record.agreement
    if known is None or known.agrees:
        return None
    return (
        f"{record.name}: differs from ckpt by {known.loss_relative:.2g} in the loss and "
        f"{known.gradient_relative:.2g} in a gradient, more than {known.tolerance:g}: one of both "
        "is wrong, or the network is too ill-conditioned for its dtype"
    )


def peer_passes(
    engines: Sequence[Engine],
    strategies: Sequence[Strategy],
    workload: Workload,
    device: Device,
    tell: Callable[[int, int], None],
) -> list[PeerPass]:
    """Every strategy in every engine, measured once; `tell` gets how many are done of how many."""
    if not engines:
        return []
    expected = own_values(workload, device)
    own = Own(expected, rounding_spread(workload, device, expected))
    passes: list[PeerPass] = []
    for engine in engines:
        for strategy in strategies:
            tell(len(passes), len(engines) * len(strategies))
            passes.append(_peer_pass(engine, strategy, workload, own))
    return passes


def own_values(workload: Workload, device: Device) -> Values:
    """Loss and gradients of ckpt's own pass; no strategy changes them."""
    with device.backend.quiet():
        result = workload.load(device.autodiff().watched_by(None)).forward()
        gradients = result.root.backward()
    found = [gradients.wrt(parameter) for parameter in result.parameters.values()]
    return Values(float(np.sum(result.root.numpy())), [g.numpy() for g in found if g is not None])


def rounding_spread(workload: Workload, device: Device, expected: Values) -> float:
    """How far rounding alone moves loss and gradient of a program with one parameter from
    `expected`, as a share; 0 for any other. A move to what is not finite is no measure.

    The parameter is moved by one to `MOVES` units in the last place, which is nothing to the
    function and makes every rounding anew. A tensor that is cut between two nearly equal singular
    values is the case in point: which of both is kept is rounding.
    """
    parameters = workload.parameters()
    if sum(array.size for array in parameters.values()) != 1:
        return 0.0
    moved, found = parameters, [0.0]
    for _ in range(MOVES):
        moved = {name: _next(array) for name, array in moved.items()}
        other = own_values(workload.with_parameters(moved), device)
        found.append(share_apart(expected, other))
    return max(share for share in found if np.isfinite(share))


def _next(array: Any) -> Any:
    return np.nextafter(array, np.inf, dtype=array.dtype)


def _peer_pass(engine: Engine, strategy: Strategy, workload: Workload, own: Own) -> PeerPass:
    record = PeerRecord(engine.name, strategy.name, engine.version, engine.threads)
    try:
        regions = regions_of(strategy, workload.layer_count)
        network = engine.network(workload, regions)
    except NoPeer as reason:
        return PeerPass(replace(record, reason=str(reason)), None)
    measured = network.measure()
    found = network.values(network.backward(network.forward()))
    dtype = str(workload.settings["dtype"])
    return PeerPass(
        replace(
            record,
            memory=measured.memory,
            recomputed_by_op=measured.recomputed_by_op,
            compile_s=measured.compile_s,
            agreement=agreement(own.values, found, dtype, own.tolerance(network)),
        ),
        network,
    )
