"""The parts of a row, from what a library says and what the rounds measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ckptcli.measure.rounds import Rounds
from ckptcli.measure.row import Outcome, Passes, Row

if TYPE_CHECKING:
    from ckptcli.peers.base import Runner, Values


class Named(Protocol):
    """A strategy, of which the row has the name."""

    @property
    def name(self) -> str: ...


def empty_row(engine: Runner, strategy: Named) -> Row:
    """The row of a strategy in a library, before anything is known of it."""
    return Row(
        strategy=strategy.name,
        device=engine.version,
        reference=False,
        memory=None,
        outcome=None,
        cost=None,
        passes=Passes(),
        trace=None,
        engine=engine.name,
        library=engine.version,
        threads=engine.threads,
    )


def without_figures(row: Row, reason: str) -> Row:
    """The row of something that has none, and why."""
    return replace(
        row,
        memory=None,
        outcome=None,
        agreement=None,
        plain_agreement=None,
        counterpart=None,
        compile_s=None,
        compiled=None,
        passes=Passes(),
        reason=reason,
    )


def passes_of(rounds: Rounds, name: str, splits: bool = True) -> Passes:
    """The samples of a subject; `splits` is whether its phases mean anything."""
    taken = rounds.samples.get(name, [])
    samples = tuple(taken if splits else (sample.unsplit() for sample in taken))
    return Passes(samples[: rounds.warmup], samples[rounds.warmup :])


def outcome_of(
    values: Values,
    check: float | None,
    recomputed_by_op: dict[str, int] | None,
    exact: Sequence[float] | None = None,
) -> Outcome:
    """What a library's pass computed; `check` is the sum of the first parameter's gradient, `exact`
    what theory says of loss and gradient.
    """
    one = sum(gradient.size for gradient in values.gradients) == 1
    return Outcome(
        loss=values.loss,
        grad_sum_w0=check,
        grad_sha256=None,
        recomputed_by_op=recomputed_by_op,
        gradient=float(values.gradients[0].item()) if one else None,
        exact=exact,
    )
