"""Every proof for one strategy, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.measure.check import Check, WrongGradient
from ckptcli.measure.difference import Difference
from ckptcli.measure.gauge import GaugeChange
from ckptcli.measure.wrong_values import NodeValue
from ckptcli.passes.run import run_pass
from ckptcli.verify.bits import farthest_difference, first_difference, relative_distance
from ckptcli.verify.differences import directional_differences
from ckptcli.verify.fidelity import FidelitySink
from ckptcli.workloads.base import Workload

InLayer = TypeVar("InLayer", NodeValue, GaugeChange)


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
    no_differences = _why_no_differences(own)
    compared, wrong = own.fidelity.compared, own.fidelity.wrong
    return Check(
        strategy=strategy.name,
        gradients=len(reference.gradients),
        by_bits=spread is None,
        gradients_apart=tuple(_wrong(reference.gradients, own.gradients, spread)),
        differences=()
        if no_differences
        else tuple(directional_differences(precise, strategy, seed=seed, backend=in_float64)),
        why_no_differences=no_differences,
        compared=compared,
        same_bits=compared - len(wrong) if spread is None else None,
        wrong_values=_in_layers(sorted(wrong, key=lambda value: value.node), workload),
        draws=(own.draws, reference.draws),
        spread=spread,
        has_float64=has_float64,
        gauges=_in_layers(own.fidelity.gauges, workload),
        not_finite=tuple(n for n, g in own.gradients.items() if not np.isfinite(g).all()),
        unused=reference.unused,
    )


def _why_no_differences(found: _Pass) -> str | None:
    """A difference of the loss sees through what is detached."""
    if found.fidelity.detaches:
        return "the program detaches values"
    return None if found.gradients else "the program has no gradient"


def _in_layers(values: Sequence[InLayer], workload: Workload) -> tuple[InLayer, ...]:
    """With what the program calls their layers."""
    return tuple(
        value
        if value.layer is None
        else replace(value, layer_name=workload.layer_name(value.layer))
        for value in values
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
) -> Iterator[WrongGradient]:
    for name, array in expected.items():
        if name not in found:
            missing = Difference((), float(array.size), 0.0, None)
            yield WrongGradient(name, missing, missing, math.inf)
            continue
        first = first_difference(array, found[name], spread)
        if first is not None:
            worst = farthest_difference(array, found[name])
            yield WrongGradient(name, first, worst, relative_distance(array, found[name]))


def _run(
    workload: Workload, strategy: Strategy, backend: Backend, spread: float | None = None
) -> _Pass:
    ledger = Ledger()
    fidelity = FidelitySink(ledger, backend, spread)
    done = run_pass(workload, strategy, backend, fidelity, ledger)
    gradients = done.gradient_arrays()
    unused = tuple(name for name in done.result.parameters if name not in gradients)
    return _Pass(gradients, fidelity, done.draws, unused)
