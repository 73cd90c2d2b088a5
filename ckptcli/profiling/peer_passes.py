"""The peers of a profile: one untimed pass each, then subjects of the same rounds as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.errors import UsageError
from ckptcli.measure.record import Failure
from ckptcli.measure.resident import resident_rise_bytes
from ckptcli.measure.rounds import Rounds
from ckptcli.measure.row import Row
from ckptcli.passes.run import run_pass
from ckptcli.peers.agreement import TOLERANCES, agreement, share_apart
from ckptcli.peers.base import (
    Engine,
    NoPeer,
    PeerNetwork,
    Runner,
    TimedNetwork,
    Values,
    elsewhere,
    engines as known_engines,
    name_of,
    workloads_of,
)
from ckptcli.profiling.fresh_process import in_fresh_process
from ckptcli.profiling.out_of_memory import PassOutOfMemory, raise_told, told_as_failure
from ckptcli.profiling.rows import Named, empty_row, outcome_of, passes_of, without_figures
from ckptcli.workloads.base import Workload

MOVES = 3
"""How often the parameter is moved to see what rounding does."""

SPREADS = 10.0
"""How many times that a library may be away, which rounds in more places than one."""

PLAIN = "none"
"""The strategy under which an engine runs a program without a checkpoint."""

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
    """One strategy in one library, or as a flat program: its network, and the row so far. It is a
    subject of the rounds.

    Without a network there is no peer: the row says why, and `failure` if memory ran out.
    """

    def __init__(self, engine: Runner, strategy: Named) -> None:
        self.engine = engine
        self.row = empty_row(engine, strategy)
        self.network: TimedNetwork | None = None
        self.failure: Failure | None = None

    @property
    def name(self) -> str:
        return self.row.name

    def forward(self) -> Any:
        assert self.network is not None
        try:
            return self.network.forward()
        except Exception as error:
            raise_told(self.engine, self.name, "a timed forward", error)

    def backward(self, state: Any) -> Any:
        assert self.network is not None
        try:
            return self.network.backward(state)
        except Exception as error:
            raise_told(self.engine, self.name, "a timed backward", error)

    def check(self, result: Any) -> float | None:
        assert self.network is not None
        return self.network.check(result)

    def measure_process_peak(self) -> None:
        """What one more pass raises the process's memory by; nothing of one that does not fit. Of a
        compiled program what it raises a fresh process's by, where there is one.
        """
        self._measure_fresh_process()
        memory = self.row.memory
        if self.network is None or memory is None or memory.process_peak_bytes is not None:
            return
        with suppress(PassOutOfMemory):
            rise = resident_rise_bytes(self)
            self.row = replace(self.row, memory=replace(memory, process_peak_bytes=rise))

    def _measure_fresh_process(self) -> None:
        compiled, memory = self.row.compiled, self.row.memory
        if self.network is None or compiled is None or memory is None:
            return
        compiled = in_fresh_process(self.network, compiled)
        memory = replace(
            memory,
            compiled_peak_bytes=compiled.peak_bytes,
            process_peak_bytes=compiled.fresh_process_bytes,
        )
        self.row = replace(self.row, compiled=compiled, memory=memory)

    def hold_against(self, finite_difference: float) -> None:
        """Set the derivative by a finite difference of the loss beside the gradient."""
        outcome = self.row.outcome
        if outcome is not None and outcome.gradient is not None:
            outcome = replace(outcome, finite_difference=finite_difference)
            self.row = replace(self.row, outcome=outcome)

    def leave_out(self, reason: str, failure: Failure | None = None) -> None:
        """Keep no figure, and no array of the network."""
        self.row = without_figures(self.row, reason)
        self.network, self.failure = None, failure

    def fail(self, failure: Failure) -> None:
        """Leave out what ran out of memory."""
        self.leave_out(f"out of memory in {failure.phase}: {failure.message}", failure)

    def finished(self, rounds: Rounds) -> Row:
        """The row with the samples of the rounds."""
        if self.network is None:
            return self.row
        return replace(self.row, passes=passes_of(rounds, self.name, self.network.splits))


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
    if not backend.is_cpu:
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


def peer_passes(
    engines: Sequence[Engine],
    strategies: Sequence[Strategy],
    workload: Workload,
    device: Device,
    tell: Callable[[int, int], None],
) -> Iterator[PeerPass]:
    """Every strategy in every engine, measured once; `tell` gets how many are done of how many.

    Raises:
        PassOutOfMemory: ckpt's own values do not fit under any strategy.
    """
    if not engines:
        return
    own = own_of(workload, device, strategies)
    passes = chain.from_iterable(
        _in_one_engine(engine, strategies, workload, own) for engine in engines
    )
    most = len(engines) * len(strategies)
    for done in range(most):
        tell(done, most)
        yield next(passes)


def _in_one_engine(
    engine: Engine, strategies: Sequence[Strategy], workload: Workload, own: Own
) -> Iterator[PeerPass]:
    """Each strategy in the order given. `none` is measured before them: it says of the others
    whether the checkpoint changed something.
    """
    plain = next((s for s in strategies if s.name == PLAIN), None)
    first, values = None, None
    if plain is not None:
        first, values = _peer_pass(engine, plain, workload, own, None)
    for strategy in strategies:
        if first is not None and strategy is plain:
            yield first
        else:
            yield _peer_pass(engine, strategy, workload, own, values)[0]


def unreached(
    engines: Sequence[Engine], strategies: Sequence[Strategy], known: Sequence[PeerPass]
) -> Iterator[PeerPass]:
    """The peers that an interrupt left without a pass."""
    names = {peer.name for peer in known}
    for engine in engines:
        for strategy in strategies:
            peer = PeerPass(engine, strategy)
            if peer.name not in names:
                peer.leave_out("the run was interrupted before its pass")
                yield peer


def own_of(workload: Workload, device: Device, strategies: Sequence[Strategy]) -> Own:
    """By the first strategy that fits, `none` before the others.

    Raises:
        PassOutOfMemory: none of them does.
    """
    *others, last = (NoCheckpointing(), *strategies)
    for strategy in others:
        with suppress(PassOutOfMemory):
            return _own_under(workload, device, strategy)
        device.backend.release_cached()
    return _own_under(workload, device, last)


def _own_under(workload: Workload, device: Device, strategy: Strategy) -> Own:
    with told_as_failure(device.backend, strategy.name, lambda: "the pass that peers are held to"):
        expected = own_values(workload, device, strategy)
        return Own(expected, rounding_spread(workload, device, expected, strategy))


def own_values(workload: Workload, device: Device, strategy: Strategy | None = None) -> Values:
    """Loss and gradients of ckpt's own pass; no strategy changes them."""
    with device.backend.quiet():
        done = run_pass(workload, strategy or NoCheckpointing(), device.backend)
    return Values(done.loss, list(done.gradient_arrays().values()))


def rounding_spread(
    workload: Workload, device: Device, expected: Values, strategy: Strategy | None = None
) -> float:
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
        other = own_values(workload.with_parameters(moved), device, strategy)
        found.append(share_apart(expected, other))
    return max(share for share in found if np.isfinite(share))


def _next(array: Any) -> Any:
    return np.nextafter(array, np.inf, dtype=array.dtype)


def _peer_pass(
    engine: Engine, strategy: Strategy, workload: Workload, own: Own, plain: Values | None
) -> tuple[PeerPass, Values | None]:
    """The peer, and what it computed; `plain` is what the engine does without a checkpoint."""
    peer, values = PeerPass(engine, strategy), None
    try:
        with told_as_failure(engine, peer.name, lambda: _phase(peer)):
            values = _measure(peer, engine, strategy, workload, own, plain)
    except NoPeer as reason:
        peer.leave_out(str(reason))
    except PassOutOfMemory as error:
        peer.fail(error.failures[0])
    return peer, values


def _phase(peer: PeerPass) -> str:
    return "loading" if peer.network is None else "its memory pass"


def _measure(
    peer: PeerPass,
    engine: Engine,
    strategy: Strategy,
    workload: Workload,
    own: Own,
    plain: Values | None,
) -> Values:
    """Fill in the row."""
    there = elsewhere(strategy, workload.layer_count)
    network = peer.network = engine.network(workload, there.regions)
    measured = network.measure()
    result = network.backward(network.forward())
    values = network.values(result)
    tolerance, dtype = own.tolerance(network), str(workload.settings["dtype"])
    exact = workload.exact
    peer.row = replace(
        peer.row,
        memory=measured.memory,
        outcome=outcome_of(
            values,
            network.check(result),
            measured.recomputed_by_op,
            None if exact is None else (exact.loss, exact.gradient),
        ),
        counterpart=there.reading or None,
        compile_s=measured.compile_s,
        compiled=measured.compiled,
        agreement=agreement(own.values, values, dtype, tolerance),
        plain_agreement=None
        if plain is None
        else agreement(plain, values, dtype, tolerance, f"{engine.name} {PLAIN}"),
    )
    return values
