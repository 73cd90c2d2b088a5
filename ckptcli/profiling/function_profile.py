"""A JAX function of the user's own: without checkpoints, as it is, and under each strategy.

Rows are held to `none` of the same engine. How far rounding alone goes is known from `none` twice,
compiled and op by op: a gradient that these two do not agree on is rounding, and is not compared.

Invariant: nothing is compiled or computed before the function was traced twice to one program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import ProgramError
from ckptcli.measure.origin import read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Agreement
from ckptcli.measure.saved_list import SavedList
from ckptcli.measure.stability import read_load, stability_warnings
from ckptcli.peers.agreement import agreement, distance
from ckptcli.peers.base import Engine, NoPeer, PeerNetwork, Values
from ckptcli.peers.function_strategies import NONE, FunctionStrategy
from ckptcli.peers.jax_function import SMALLER, UserFunction, load_function
from ckptcli.peers.jax_function_rows import (
    EagerFunction,
    FunctionProgram,
    FunctionRows,
    gradient_program,
    network_of,
    real_dtype,
)
from ckptcli.peers.jax_names import names_of_policy
from ckptcli.peers.jax_not_finite import first_not_finite
from ckptcli.peers.jax_policies import policy_of
from ckptcli.peers.jax_saved import function_residuals, names_in
from ckptcli.peers.jax_trial import blamed, tried
from ckptcli.profiling.own_program import Finished, OwnRun, Tell, divergence
from ckptcli.profiling.peer_passes import SPREADS, WIDEST, PeerPass
from ckptcli.profiling.rows import outcome_of
from ckptcli.units import count

COMPILED = "jax"


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that rows are held to, and how far rounding alone goes.

    Attributes:
        values: of `none`, compiled.
        settled: the positions of the gradients that are more than rounding.
        tolerance: as a share of the largest element.
        dtype: of the values.
        op_by_op: how far `none` op by op is from it, as a share; 0 where it agrees bit for bit.
    """

    values: Values
    settled: Sequence[int]
    tolerance: float
    dtype: str
    op_by_op: float

    def beside(self, values: Values) -> Agreement:
        """How far values are from these, in the loss and in the settled gradients."""
        return agreement(
            self._kept(self.values), self._kept(values), self.dtype, self.tolerance, NONE
        )

    def _kept(self, values: Values) -> Values:
        return Values(values.loss, [values.gradients[position] for position in self.settled])


class _Pass(PeerPass):
    """One strategy in one engine: its program and network, and the row so far."""

    network: PeerNetwork | None
    program: FunctionProgram | None = None
    values: Values | None = None
    expected: Expected | None = None

    def measure(self) -> None:
        """Fill in what one pass holds, and how far its values are from those of `none`."""
        network, program, expected = self.network, self.program, self.expected
        if network is None or program is None or expected is None or self.values is None:
            return
        measured = network.measure()
        held = SavedList(self.row.strategy, function_residuals(program))
        check = network.check(network.backward(network.forward()))
        self.row = replace(
            self.row,
            memory=replace(
                measured.memory, saved_bytes=held.saved_bytes, saved_tensors=held.saved_tensors
            ),
            outcome=outcome_of(self.values, check, measured.recomputed_by_op),
            compile_s=measured.compile_s,
            compiled=measured.compiled,
            agreement=expected.beside(self.values),
        )
        self.measure_process_peak()


def profile_function(
    text: str,
    strategies: Sequence[FunctionStrategy],
    engines: Sequence[Engine],
    plan: Plan,
    threshold: float,
    tell: Tell,
    config: dict[str, object] | None = None,
    command: Sequence[str] = (),
    finished: Finished | None = None,
) -> RunRecord:
    """Profile the function that `FILE.py:MAKE` makes, in JAX's engines, which are imported.

    The first strategy is `none`. One that is nothing for this function, or under which it fails,
    has a row with the reason. `finished` gets the record so far after each complete round, marked
    partial.

    Raises:
        UsageError: no function with parameters, or a policy or a place that is not there.
        ProgramError: the function fails, has no gradient, or is another each time.
    """
    before = read_load()
    origin = read_origin(command)
    user = load_function(text)
    traced = tried(user)
    rows = FunctionRows(user, traced.program)
    passes = [_opened(engine, strategy, rows) for engine in engines for strategy in strategies]
    expected = _expected(passes[0], rows)
    for this in passes:
        this.expected = expected
    run = OwnRun(
        {"name": "function", "title": user.title, "function": user.text},
        "Jax(Cpu)",
        engines[0].version,
        plan,
        threshold,
        config or {},
        origin,
        notes=[
            *traced.notes,
            *_rounding(user, expected),
            *_without_names(strategies, rows),
            *(note for this in passes for note in _doubts(this, rows, len(engines) == 1)),
        ],
    )
    with running(text, SMALLER):
        rounds = run.measured(passes, tell, finished)
    record = run.record(passes, rounds, rounds.interrupted)
    doubts = stability_warnings(record, before, None)
    return replace(record, warnings=(*record.warnings, *doubts))


def _opened(engine: Engine, strategy: FunctionStrategy, rows: FunctionRows) -> _Pass:
    """The strategy compiled and run once, or the reason why it is not.

    Raises:
        ProgramError: it fails without checkpoints.
    """
    this = _Pass(engine, strategy)
    try:
        this.program = rows.program(strategy)
        this.row = replace(this.row, counterpart=strategy.reading or None)
        if strategy.place is not None:
            calls = count(rows.calls(strategy.place), "call")
            what = f"{calls} of `{strategy.place.function}`, each under a checkpoint"
            this.row = replace(this.row, counterpart=what)
    except NoPeer as reason:
        this.leave_out(str(reason))
        return this
    try:
        with blamed(rows.user.text):
            this.network = network_of(engine.name, this.program)
            this.values = this.network.values(this.network.backward(this.network.forward()))
    except ProgramError as error:
        if strategy.keyword == NONE:
            raise
        this.leave_out(f"it fails under this checkpoint: {error.message}")
        this.row = replace(this.row, failed=True)
    return this


def _expected(reference: _Pass, rows: FunctionRows) -> Expected:
    """What `none` computes, and how far the same op by op is from it."""
    assert reference.values is not None
    assert reference.program is not None
    values, again = reference.values, reference.values
    if reference.row.engine == COMPILED:
        again = op_by_op(reference.program, rows.user.text)
    assert reference.network is not None
    check_same_again(reference.network, values, rows)
    return expected_of(values, again, rows.tolerance, real_dtype(rows.user.parameter_leaves()))


def check_same_again(network: PeerNetwork, values: Values, rows: FunctionRows) -> None:
    """Refuse a function that a second pass computes otherwise, with the very same program.

    Raises:
        ProgramError: such a function, or one that fails then.
    """
    with blamed(rows.user.text):
        again = network.values(network.backward(network.forward()))
    known = agreement(values, again, real_dtype(rows.user.parameter_leaves()), rows.tolerance, NONE)
    if not known.agrees and np.isfinite(values.loss):
        apart = f"the loss is {values.loss!r} in one pass and {again.loss!r} in the next"
        if known.loss_relative <= known.tolerance:
            apart = f"a gradient of one pass and the next is apart by {known.gradient_relative:.2g}"
        raise ProgramError(
            f"`{rows.user.text}` does something else each time: {apart}",
            "what it calls in Python must give the same for the same arguments",
        )


def op_by_op(program: FunctionProgram, text: str) -> Values:
    """The values of a program that no compiler saw whole.

    Raises:
        ProgramError: it fails.
    """
    with blamed(text):
        network = EagerFunction(program)
        return network.values(network.backward(network.forward()))


def expected_of(values: Values, again: Values, tolerance: float, dtype: str) -> Expected:
    """The values, with what rounding alone does to them, from the same computed otherwise."""
    widest = max(WIDEST, tolerance)
    spreads = [distance(own, other)[0] for own, other in zip(values.gradients, again.gradients)]
    finite = [np.isfinite(gradient).all() for gradient in values.gradients]
    settled = [
        position
        for position, (spread, is_finite) in enumerate(zip(spreads, finite))
        if SPREADS * spread <= widest or not is_finite
    ]
    loss_spread = distance(np.asarray(values.loss, dtype), np.asarray(again.loss, dtype))[0]
    known = [s for s in (loss_spread, *(spreads[p] for p in settled)) if np.isfinite(s)]
    spread = max(known, default=0.0)
    return Expected(values, settled, max(tolerance, min(widest, SPREADS * spread)), dtype, spread)


def _rounding(user: UserFunction, expected: Expected) -> Iterator[str]:
    """Which gradients are not compared."""
    names = user.parameter_names()
    left_out = [names[p] for p in range(len(names)) if p not in expected.settled]
    if left_out:
        yield (
            f"{len(left_out)} of {len(names)} gradients are rounding alone, among them that of "
            f"`{left_out[0]}`: compiled and op by op they are others, and they are not compared"
        )


def _names_of(strategy: FunctionStrategy) -> list[str]:
    """The names that a strategy or its policy goes by; none of one that JAX has no policy for."""
    try:
        return sorted(names_of_policy(policy_of(strategy)) | set(strategy.names))
    except NoPeer:
        return sorted(strategy.names)


def _without_names(strategies: Sequence[FunctionStrategy], rows: FunctionRows) -> Iterator[str]:
    """Names that a strategy goes by and no value has, be it inside of a derivative rule."""
    asked = {strategy.name: _names_of(strategy) for strategy in strategies}
    if not any(asked.values()):
        return
    arguments = rows.user.parameter_leaves(), rows.user.other_arrays()
    known = names_in(gradient_program(rows.without, *arguments).jaxpr)
    for strategy in strategies:
        for name in asked[strategy.name]:
            if name not in known:
                yield (
                    f"{strategy.name}: no value has the name `{name}`"
                    + (f": known are {', '.join(sorted(known))}" if known else "")
                    + "; name it with jax.ad_checkpoint.checkpoint_name"
                )


def _doubts(this: _Pass, rows: FunctionRows, is_one_engine: bool) -> Iterator[str]:
    """What is not finite, and what makes it; what the compiler changed."""
    values, program, expected = this.values, this.program, this.expected
    if values is None or program is None or expected is None:
        return
    name = this.row.strategy if is_one_engine else this.row.name
    told = list(divergence(name, values, rows.user.parameter_names()))
    yield from told
    if told:
        yield f"{name}: {first_not_finite(program, rows.user.text)}"
    elif this.row.engine == COMPILED:
        yield from _compiler(name, program, values, expected, rows.user.text)


def _compiler(
    name: str, program: FunctionProgram, values: Values, expected: Expected, text: str
) -> Iterator[str]:
    """Where a row differs, whether it does so op by op too."""
    known = expected.beside(values)
    if known.agrees:
        return
    alone = expected.beside(op_by_op(program, text))
    word = "agrees" if alone.agrees else "differs too"
    yield (
        f"{name}: loss and gradients are {known.loss_relative:.2g} and "
        f"{known.gradient_relative:.2g} away from those of `none`; op by op, without the compiler, "
        f"the same row {word} ({alone.gradient_relative:.2g}): `ckpt check --function {text}` "
        "names the first value that is recomputed otherwise"
    )
