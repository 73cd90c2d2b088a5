"""What JAX holds for a function of the user's own: as it is, and under strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.measure.function_saved import Residuals
from ckptcli.peers.base import NoPeer
from ckptcli.peers.function_strategies import NONE, OWN, FunctionStrategy
from ckptcli.peers.jax_function import load_function
from ckptcli.peers.jax_function_rows import FunctionRows
from ckptcli.peers.jax_saved import function_residuals
from ckptcli.peers.jax_trial import blamed, tried


@dataclass(frozen=True, slots=True)
class SavedFunction:
    """What is held.

    Attributes:
        title: the function in words.
        name: the strategy that the function as it is amounts to, `own` or `none`.
        as_it_is: what is held for the function as it is.
        held: by strategy; a text says why there is nothing.
        notes: what a reader has to know.
    """

    title: str
    name: str
    as_it_is: Residuals
    held: dict[str, Residuals | str]
    notes: Sequence[str]


def saved_by_strategy(text: str, strategies: Sequence[FunctionStrategy]) -> SavedFunction:
    """What is held for the function that `FILE.py:MAKE` makes; nothing is computed.

    Raises:
        UsageError: no function with parameters, or a policy or a place that is not there.
        ProgramError: the function fails, has no gradient, or is another each time.
    """
    user = load_function(text)
    traced = tried(user)
    rows = FunctionRows(user, traced.program)
    name = OWN if rows.has_checkpoints else NONE
    as_it_is = _held(rows, FunctionStrategy(name, name))
    assert isinstance(as_it_is, Residuals)
    held = {strategy.name: _held(rows, strategy) for strategy in strategies}
    return SavedFunction(user.title, name, as_it_is, held, traced.notes)


def _held(rows: FunctionRows, strategy: FunctionStrategy) -> Residuals | str:
    try:
        program = rows.program(strategy)
    except NoPeer as reason:
        return str(reason)
    with blamed(rows.user.text):
        return function_residuals(program, rows.user.array_names())
