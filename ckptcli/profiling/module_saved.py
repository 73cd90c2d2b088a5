"""What a PyTorch module of the user's own holds after forward, as it is and under strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.module_saved import SUMS
from ckptcli.measure.saved_list import SavedList, SavedProgram
from ckptcli.options.subjects import MODULE
from ckptcli.peers.base import Engine
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import NONE, OWN, module_strategies
from ckptcli.peers.torch_compiled import UNWATCHED
from ckptcli.peers.torch_fake import shapes_only
from ckptcli.peers.torch_loading import load_module
from ckptcli.peers.torch_module import SMALLER
from ckptcli.peers.torch_saved import saved_by_module
from ckptcli.peers.torch_trial import tried, why_not_again
from ckptcli.profiling.fake_profile import KERNELS, SHAPES_ONLY, values_refused
from ckptcli.profiling.module_profile import ModulePass, opened


def saved_under_strategies(
    request: ModuleRequest, seed: int, engine: Engine, names: Sequence[str], is_fake: bool = False
) -> SavedProgram:
    """What each strategy holds, of the module as it is where none is named; `is_fake` is whether it
    is found out by shapes alone.

    Raises:
        UnknownNameError, UsageError: no such strategy, or no module with an input on the CPU.
        ProgramError: the module fails without checkpoints; names the line and the part.
    """
    if not is_fake:
        return _saved(request, seed, engine, names)
    with values_refused(request.text), shapes_only():
        found = _saved(request, seed, engine, names, has_values=False)
    title = f"{found.title}, {SHAPES_ONLY}"
    return replace(found, title=title, notes=[KERNELS, *found.notes])


def _saved(
    request: ModuleRequest,
    seed: int,
    engine: Engine,
    names: Sequence[str],
    has_values: bool = True,
) -> SavedProgram:
    user = load_module(replace(request, accumulate=1), seed)
    trial = tried(user, seed, request.blocks, has_values)
    chosen = list(names) or [OWN if trial.own_checkpoints else NONE]
    strategies = module_strategies(chosen)
    lists = [
        _held(strategy.name, opened(strategy, user, trial, engine, seed))
        for strategy in (strategies if NONE in chosen else strategies[1:])
    ]
    first = next((found for found in lists if found.reason is None), SavedList(chosen[0]))
    notes = list(trial.notes())
    return SavedProgram(user.title, lists, SUMS, MODULE, as_it_is=first, notes=notes)


def _held(name: str, this: ModulePass) -> SavedList:
    if this.network is None:
        return SavedList(name, reason=str(this.row.reason))
    if this.network.is_compiled:
        return SavedList(name, reason=UNWATCHED)
    user = this.network.user
    try:
        with running(user.text, SMALLER):
            return SavedList(name, saved_by_module(this.network))
    except (ProgramError, OutputError) as error:
        return SavedList(name, reason=why_not_again(error, user))
