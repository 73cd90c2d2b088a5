"""What a PyTorch module of the user's own holds after forward, as it is and under strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.module_saved import Held
from ckptcli.peers.base import Engine
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import NONE, OWN, module_strategies
from ckptcli.peers.torch_loading import load_module
from ckptcli.peers.torch_module import SMALLER
from ckptcli.peers.torch_saved import saved_by_module
from ckptcli.peers.torch_trial import tried, why_not_again
from ckptcli.profiling.module_profile import opened


class HeldByModule:
    """What each strategy holds.

    Attributes:
        title: the module in words.
        notes: what a reader of figures has to know.
        held: strategy -> what is held, or why there is nothing; the module as it is where none is
            named.
    """

    def __init__(
        self, request: ModuleRequest, seed: int, engine: Engine, names: Sequence[str]
    ) -> None:
        """Raises:
        UnknownNameError, UsageError: no such strategy, or no module with an input on the CPU.
        ProgramError: the module fails without checkpoints; names the line and the part.
        """
        user = load_module(replace(request, accumulate=1), seed)
        trial = tried(user, seed, request.blocks)
        self.title, self.notes = user.title, list(trial.notes())
        chosen = list(names) or [OWN if trial.own_checkpoints else NONE]
        strategies = module_strategies(chosen)
        self.held: dict[str, Held] = {}
        for strategy in strategies if NONE in chosen else strategies[1:]:
            this = opened(strategy, user, trial, engine, seed)
            if this.network is None:
                self.held[strategy.name] = str(this.row.reason)
                continue
            try:
                with running(user.text, SMALLER):
                    self.held[strategy.name] = saved_by_module(this.network)
            except (ProgramError, OutputError) as error:
                self.held[strategy.name] = why_not_again(error, user)
