"""Every proof for one strategy, with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.passes.run import run_pass
from ckptcli.verify.bits import Difference, first_difference, relative_distance
from ckptcli.verify.differences import DirectionalDifference, directional_differences
from ckptcli.verify.fidelity import FidelitySink, Infidelity
from ckptcli.verify.gauge import GaugeChange
from ckptcli.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one strategy.

    Attributes:
        gradients: how many parameters' gradients were compared with `none`'s.
        wrong_gradients: (parameter, difference) for each that is not the same bit for bit, or lies
            further off than `spread`.
        differences: the gradient against finite differences; empty where it was not asked for.
        compared: how many recomputed values were held against the originals.
        wrong_values: those that are not the same, to the same measure.
        gauges: how each decomposition that is not the same differs, in the order of recomputation.
        draws: how many random draws the pass took from the stream, `none`'s behind it.
        spread: how far two runs of `none` lie apart, relative to each gradient's largest element;
            None for a deterministic library, where bits are compared.
        unused: the parameters that no gradient reaches, under `none` either.
        not_finite: the parameters whose gradient holds nan or infinity. `none`'s may do so too:
            a strategy that keeps it passes.
        has_float64: whether the device has the dtype that finite differences need; where not, they
            are taken of the same program in NumPy.
    """

    strategy: str
    gradients: int
    wrong_gradients: tuple[tuple[str, Difference], ...]
    differences: tuple[DirectionalDifference, ...]
    compared: int
    wrong_values: tuple[Infidelity, ...]
    draws: tuple[int, int]
    spread: float | None = None
    has_float64: bool = True
    gauges: tuple[GaugeChange, ...] = ()
    not_finite: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def usable_directions(self) -> int:
        """How many finite differences something can be concluded from."""
        return sum(direction.is_usable for direction in self.differences)

    @property
    def unusable_directions(self) -> int:
        """How many finite differences were taken in vain."""
        return len(self.differences) - self.usable_directions

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
    unused: tuple[str, ...]


def check(
    workload: Workload,
    strategy: Strategy,
    precise: Workload,
    seed: int = 0,
    backend: Backend | None = None,
) -> Check:
    """Hold `strategy` against `none` on `workload`, on NumPy by default.

    `precise` is the same workload in float64, for finite differences in random directions.
    """
    backend = backend or open_backend()
    spread = None
    if not backend.is_deterministic:
        first = _run(workload, NoCheckpointing(), backend)
        again = _run(workload, NoCheckpointing(), backend)
        spread = run_to_run_spread(first.gradients, again.gradients)
    own = _run(workload, strategy, backend, spread)
    reference = _run(workload, NoCheckpointing(), backend)
    has_float64 = "float64" in backend.dtypes
    in_float64 = backend if has_float64 else open_backend()
    return Check(
        strategy=strategy.name,
        gradients=len(reference.gradients),
        wrong_gradients=tuple(_wrong(reference.gradients, own.gradients, spread)),
        differences=()
        if own.fidelity.detaches or not own.gradients
        else tuple(directional_differences(precise, strategy, seed=seed, backend=in_float64)),
        compared=own.fidelity.compared,
        wrong_values=tuple(own.fidelity.wrong),
        draws=(own.draws, reference.draws),
        spread=spread,
        has_float64=has_float64,
        gauges=tuple(own.fidelity.gauges),
        not_finite=tuple(n for n, g in own.gradients.items() if not np.isfinite(g).all()),
        unused=reference.unused,
    )


def within_spread(workload: Workload, strategy: Strategy, backend: Backend) -> bool:
    """Whether the gradients lie no further from `none`'s than two runs of `none` do."""
    first = _run(workload, NoCheckpointing(), backend).gradients
    spread = run_to_run_spread(first, _run(workload, NoCheckpointing(), backend).gradients)
    return not any(_wrong(first, _run(workload, strategy, backend).gradients, spread))


def run_to_run_spread(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """The largest distance of two runs' gradients, relative to each one's largest element."""
    return max((relative_distance(first[name], second[name]) for name in first), default=0.0)


def _wrong(
    expected: Mapping[str, Any], found: Mapping[str, Any], spread: float | None
) -> Iterator[tuple[str, Difference]]:
    for name, array in expected.items():
        if name not in found:
            yield name, Difference((), float(array.size), 0.0, None)
            continue
        difference = first_difference(array, found[name], spread)
        if difference is not None:
            yield name, difference


def _run(
    workload: Workload, strategy: Strategy, backend: Backend, spread: float | None = None
) -> _Pass:
    ledger = Ledger()
    fidelity = FidelitySink(ledger, backend, spread)
    done = run_pass(workload, strategy, backend, fidelity, ledger)
    gradients = done.gradient_arrays()
    unused = tuple(name for name in done.result.parameters if name not in gradients)
    return _Pass(gradients, fidelity, done.draws, unused)
