"""Every proof for one strategy in another library, with its evidence.

A gradient is held against that of the same engine without a checkpoint, ckpt's own, finite
differences of the engine's own loss in float64, and theory. Libraries round differently, so that
sizes are compared, not bits (`ckptcli.peers.agreement`).

Invariant: whatever is compared is the engine's own, but for ckpt's gradient; a fault of ckpt's
shows beside finite differences and theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.measure.check import Check, WrongGradient
from ckptcli.measure.difference import BesideTheory, DirectionalDifference
from ckptcli.measure.evidence import why_not_ours
from ckptcli.measure.row import Agreement, Outcome, Row
from ckptcli.measure.wrong_values import LayerValue
from ckptcli.peers.agreement import agreement, distance, wrong_gradient
from ckptcli.peers.base import Engine, NoPeer, PeerNetwork, Values, elsewhere
from ckptcli.profiling.out_of_memory import told_as_failure
from ckptcli.profiling.peer_passes import PLAIN, Own, own_of
from ckptcli.profiling.rows import empty_row, outcome_of
from ckptcli.verify.bits import farthest_difference, first_difference
from ckptcli.verify.differences import differences_of
from ckptcli.workloads.base import Workload

BESIDE_THEORY = 10.0
"""How many times as far from theory as ckpt's own gradient is, which shows what truncation does."""

NO_DRAWS = "the library's program draws no random numbers"


def check_in_engines(
    engines: Sequence[Engine],
    strategies: Sequence[Strategy],
    workload: Workload,
    precise: Workload,
    device: Device,
    seed: int = 0,
) -> Iterator[Check]:
    """Check every strategy in every engine; `precise` is the same workload in float64.

    Raises:
        PassOutOfMemory: a pass does not fit.
    """
    if not engines:
        return
    own = own_of(workload, device, strategies)
    for engine in engines:
        subject = _Subject(engine, workload, precise, own, seed)
        with told_as_failure(engine, f"{engine.name} {PLAIN}", lambda: "a checked pass"):
            plain = subject.plain()
        for strategy in strategies:
            with told_as_failure(
                engine, f"{engine.name} {strategy.name}", lambda: "a checked pass"
            ):
                yield _checked(subject, strategy, plain)


@dataclass(frozen=True, slots=True)
class _Plain:
    """What an engine computes without a checkpoint, and its row."""

    network: PeerNetwork
    values: Values
    row: Row


@dataclass(frozen=True, slots=True)
class _Subject:
    """A workload in an engine."""

    engine: Engine
    workload: Workload
    precise: Workload
    own: Own
    seed: int

    def plain(self) -> _Plain:
        """The program without a checkpoint."""
        regions = [LayerRegion(self.workload.layer_count, None)]
        network = self.engine.network(self.workload, regions)
        values = _values(network)
        row = replace(
            empty_row(self.engine, NoCheckpointing()),
            outcome=self.outcome(values),
            agreement=self.beside_ours(network, values),
        )
        return _Plain(network, values, row)

    def outcome(self, values: Values, difference: float | None = None) -> Outcome:
        """The loss and, of a program with one number, the derivative and what it is held to."""
        exact = self.workload.exact
        theory = None if exact is None else (exact.loss, exact.gradient)
        return replace(outcome_of(values, None, None, theory), finite_difference=difference)

    def beside_ours(self, network: PeerNetwork, values: Values) -> Agreement:
        """How far that is from ckpt's own."""
        return agreement(self.own.values, values, self.dtype, self.own.tolerance(network))

    @property
    def dtype(self) -> str:
        return str(self.workload.settings["dtype"])

    def differences(
        self, network: PeerNetwork, values: Values, regions: Sequence[LayerRegion]
    ) -> list[DirectionalDifference]:
        """In float64: of the network itself, or of the same in that dtype."""
        if self.dtype != "float64":
            network = self.engine.network(self.precise, regions)
            values = _values(network)
        parameters = self.precise.parameters()
        return differences_of(
            parameters,
            dict(zip(parameters, values.gradients)),
            lambda moved: (network.loss_at([moved[name] for name in parameters]), b""),
            self.seed,
        )

    def theory(self, values: Values, tolerance: float) -> BesideTheory | None:
        """The derivative of a program with one number beside the exact one."""
        exact = self.workload.exact
        if exact is None or len(values.gradients) != 1 or values.gradients[0].size != 1:
            return None
        own = BesideTheory(float(self.own.values.gradients[0].item()), exact.gradient, tolerance)
        allowed = max(tolerance, BESIDE_THEORY * own.apart)
        return BesideTheory(float(values.gradients[0].item()), exact.gradient, allowed)


def _values(network: PeerNetwork) -> Values:
    return network.values(network.backward(network.forward()))


def _checked(subject: _Subject, strategy: Strategy, plain: _Plain) -> Check:
    engine, names = subject.engine, list(subject.workload.parameters())
    try:
        there = elsewhere(strategy, subject.workload.layer_count)
        is_plain = strategy.name == PLAIN
        network = plain.network if is_plain else engine.network(subject.workload, there.regions)
    except NoPeer as reason:
        return Check(strategy.name, engine.name, str(reason))
    values = plain.values if is_plain else _values(network)
    beside_ours = subject.beside_ours(network, values)
    tolerance = beside_ours.tolerance
    beside_plain = (
        None
        if is_plain
        else agreement(plain.values, values, subject.dtype, tolerance, plain.row.name)
    )
    differences = subject.differences(network, values, there.regions)
    row = replace(
        empty_row(engine, strategy),
        outcome=subject.outcome(values, _usable(differences)),
        agreement=beside_ours,
        plain_agreement=beside_plain,
    )
    return Check(
        strategy=strategy.name,
        engine=engine.name,
        counterpart=there.reading,
        gradients=len(values.gradients),
        gradients_apart=tuple(_wrong(names, plain.values, values, tolerance)),
        agreement=beside_ours,
        plain_agreement=beside_plain,
        theory=subject.theory(values, tolerance),
        differences=tuple(differences),
        why_no_differences=None if differences else "the program has no gradient",
        **_recomputed(network, tolerance),
        not_finite=tuple(n for n, g in zip(names, values.gradients) if not np.isfinite(g).all()),
        untold=_untold(network),
        finding=None
        if beside_ours.agrees
        else why_not_ours(
            row, None if is_plain else plain.row, subject.outcome(subject.own.values)
        ),
    )


def _untold(network: PeerNetwork) -> dict[str, str]:
    values = {"recomputed values": network.untold} if network.untold else {}
    return {**values, "random draws": NO_DRAWS}


def _recomputed(network: PeerNetwork, tolerance: float) -> dict[str, Any]:
    """What is known of values that were computed again, by the names of the check's fields."""
    if network.untold:
        return {}
    values = network.recomputed_values()
    return {
        "compared": len(values),
        "same_bits": sum(first_difference(v.made, v.again) is None for v in values),
        "wrong_values": tuple(
            LayerValue(v.layer, v.name, farthest_difference(v.made, v.again))
            for v in sorted(values, key=lambda value: value.layer)
            if distance(v.made, v.again)[0] > tolerance
        ),
    }


def _usable(differences: Sequence[DirectionalDifference]) -> float | None:
    """The derivative that the one direction of a program with one number gives."""
    if len(differences) != 1 or not differences[0].is_usable:
        return None
    return differences[0].difference


def _wrong(
    names: Sequence[str], expected: Values, found: Values, tolerance: float
) -> Iterator[WrongGradient]:
    for name, own, other in zip(names, expected.gradients, found.gradients):
        if distance(own, other)[0] > tolerance:
            yield wrong_gradient(name, own, other)
