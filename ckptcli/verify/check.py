"""Every proof for one strategy, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.device import device as open_device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.events import Fanout, Recorder
from ckptcli.verify.bits import Difference, first_difference
from ckptcli.verify.differences import DirectionalDifference, directional_differences
from ckptcli.verify.fidelity import FidelitySink, Infidelity
from ckptcli.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one strategy.

    Attributes:
        gradients: how many parameters' gradients were compared with `none`'s.
        wrong_gradients: (parameter, difference) for each that is not the same bit for bit.
        differences: the gradient against finite differences; empty where it was not asked for.
        compared: how many recomputed values were held against the originals.
        wrong_values: those that are not the same bit for bit.
        draws: how many random draws the pass took from the stream, `none`'s behind it.
    """

    strategy: str
    gradients: int
    wrong_gradients: tuple[tuple[str, Difference], ...]
    differences: tuple[DirectionalDifference, ...]
    compared: int
    wrong_values: tuple[Infidelity, ...]
    draws: tuple[int, int]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the strategy."""
        return not (
            self.wrong_gradients
            or self.wrong_values
            or self.draws[0] != self.draws[1]
            or any(d.is_usable and not d.agrees for d in self.differences)
        )


@dataclass(frozen=True, slots=True)
class _Pass:
    gradients: Mapping[str, Any]
    fidelity: FidelitySink
    draws: int


def check(workload: Workload, strategy: Strategy, precise: Workload, seed: int = 0) -> Check:
    """Hold `strategy` against `none` on `workload`.

    `precise` is the same workload in float64, for finite differences in random directions.
    """
    own, reference = _run(workload, strategy), _run(workload, NoCheckpointing())
    wrong = []
    for name, expected in reference.gradients.items():
        found = own.gradients.get(name)
        difference = None if found is None else first_difference(expected, found)
        if found is None:
            difference = Difference((), float(expected.size), 0.0, None)
        if difference is not None:
            wrong.append((name, difference))
    return Check(
        strategy=strategy.name,
        gradients=len(reference.gradients),
        wrong_gradients=tuple(wrong),
        differences=()
        if own.fidelity.detaches or not own.gradients
        else tuple(directional_differences(precise, strategy, seed=seed)),
        compared=own.fidelity.compared,
        wrong_values=tuple(own.fidelity.wrong),
        draws=(own.draws, reference.draws),
    )


def _run(workload: Workload, strategy: Strategy) -> _Pass:
    ledger = Ledger()
    fidelity = FidelitySink(ledger)
    plain = open_device()
    backend = TrackedBackend(plain.backend, ledger)
    device = plain.autodiff().gradient_checkpointing(strategy)
    watched = device.watched_by(Fanout(fidelity, Recorder()), backend)
    result = workload.load(watched).forward()
    gradients = result.root.backward()
    found = {name: gradients.wrt(tensor) for name, tensor in result.parameters.items()}
    arrays = {name: g.numpy() for name, g in found.items() if g is not None}
    return _Pass(arrays, fidelity, watched.keys.drawn)
