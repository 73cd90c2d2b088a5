"""What JAX holds for a function of the user's own: as it is, and under strategies."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.measure.function_saved import SUMS
from ckptcli.measure.saved_list import SavedList, SavedProgram
from ckptcli.options.subjects import FUNCTION
from ckptcli.peers.base import NoPeer
from ckptcli.peers.function_strategies import NONE, OWN, FunctionStrategy
from ckptcli.peers.jax_function import load_function
from ckptcli.peers.jax_function_rows import FunctionRows
from ckptcli.peers.jax_saved import function_residuals
from ckptcli.peers.jax_trial import blamed, tried


def saved_by_function(text: str, strategies: Sequence[FunctionStrategy]) -> SavedProgram:
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
    held = [_held(rows, strategy) for strategy in strategies]
    return SavedProgram(user.title, held, SUMS, FUNCTION, as_it_is=as_it_is, notes=traced.notes)


def _held(rows: FunctionRows, strategy: FunctionStrategy) -> SavedList:
    try:
        program = rows.program(strategy)
    except NoPeer as reason:
        return SavedList(strategy.name, reason=str(reason))
    with blamed(rows.user.text):
        return SavedList(strategy.name, function_residuals(program, rows.user.array_names()))
