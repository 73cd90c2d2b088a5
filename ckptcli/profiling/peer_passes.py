"""The peers of a profile: one untimed pass each, then subjects of the same rounds as ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UsageError
from ckptcli.measure.peer_record import PeerRecord, PeerSample
from ckptcli.measure.rounds import Rounds
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Arrays, Engine, NoPeer, PeerNetwork, Values, regions_of
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload

ON_CPU = "(Cpu)"
"""How the label of a backend ends that computes on the CPU."""


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
        UsageError: engines, and another workload than the silu network, a dtype without a
            tolerance, or a device that is not the CPU.
    """
    if not engines:
        return
    if not isinstance(workload, SiluWorkload):
        raise UsageError(
            f"engine `{engines[0].name}` runs the silu network, not `{workload.title}`",
            "leave out --workload, or --engine",
        )
    if workload.dtype not in TOLERANCES:
        raise UsageError(
            f"engine `{engines[0].name}` is compared in {' or '.join(TOLERANCES)}, not in "
            f"{workload.dtype}",
            "use another --dtype",
        )
    if not backend.label.endswith(ON_CPU):
        raise UsageError(
            f"engine `{engines[0].name}` runs on the CPU, ckpt on {backend.label}: their times say "
            "nothing of each other",
            "use --device cpu",
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
    assert isinstance(workload, SiluWorkload)
    expected = own_values(workload, device)
    passes: list[PeerPass] = []
    for engine in engines:
        for strategy in strategies:
            tell(len(passes), len(engines) * len(strategies))
            passes.append(_peer_pass(engine, strategy, workload, expected))
    return passes


def own_values(workload: SiluWorkload, device: Device) -> Values:
    """Loss and gradients of ckpt's own pass; no strategy changes them."""
    result = workload.load(device.autodiff().watched_by(None)).forward()
    gradients = result.root.backward()
    found = [gradients.wrt(weight) for weight in result.parameters.values()]
    return Values(float(np.sum(result.root.numpy())), [g.numpy() for g in found if g is not None])


def _peer_pass(
    engine: Engine, strategy: Strategy, workload: SiluWorkload, expected: Values
) -> PeerPass:
    record = PeerRecord(engine.name, strategy.name, engine.version, engine.threads)
    try:
        regions = regions_of(strategy, workload.layers)
        network = engine.network(Arrays(*workload.arrays), regions)
    except NoPeer as reason:
        return PeerPass(replace(record, reason=str(reason)), None)
    measured = network.measure()
    values = network.values(network.backward(network.forward()))
    return PeerPass(
        replace(
            record,
            memory=measured.memory,
            recomputed_by_op=measured.recomputed_by_op,
            compile_s=measured.compile_s,
            agreement=agreement(expected, values, workload.dtype),
        ),
        network,
    )
