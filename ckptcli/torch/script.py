"""From inside a training script or a test: the record of `ckpt run`, and an account of any step.

Invariant: a script goes on as if nothing had been measured: its model, gradients, optimizer and
random states are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ckptcli.measure.rounds import Plan
from ckptcli.options.measuring import THRESHOLD
from ckptcli.peers.base import open_engines
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_step import Step
from ckptcli.peers.module_strategies import ModuleStrategy, module_strategies
from ckptcli.profiling.profile import silent

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord
    from ckptcli.peers.torch_script_ledger import ScriptLedger
    from ckptcli.profiling.job import Progress

ENGINE = "torch"


def profile(
    model: Any,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    batch: Any = None,
    optimizer: Any = None,
    accumulate: int = 1,
    keep_output: bool = False,
    strategies: Sequence[str] = (),
    blocks: str | None = None,
    plan: Plan | None = None,
    threshold: float = THRESHOLD,
    progress: Progress | None = None,
    finished: Callable[[RunRecord], None] | None = None,
) -> RunRecord:
    """Profile one step of training under each strategy; the record of `ckpt run --module`.

    Args:
        model: the `torch.nn.Module`, which is copied, or a whole `Step`, which says the rest.
        *args: its arguments.
        kwargs: its keywords.
        loss: as in `Step`, as the following four.
        batch: what the loss gets beside the output.
        optimizer: an optimizer, or what makes one.
        accumulate: micro-batches in a step.
        keep_output: whether the output is held until the backward pass is done.
        strategies: by name, as with `-s`; `none` is always there, without names also `remat`, and
            `own` where the model checkpoints itself.
        blocks: which parts are its blocks, as with `--blocks`.
        plan: how many rounds to time; by default until the intervals are narrow.
        threshold: a time ratio within this of 1 is `same`.
        progress: told how far the profile is, never during a timed sample.
        finished: gets the record so far after each complete round, marked partial.

    Raises:
        MissingLibraryError: PyTorch is not installed.
        UnknownNameError: a name that no strategy has.
        UsageError: no module with an input on the CPU, or one that is compiled.
        ProgramError: it fails, does something else each time, or cannot be copied.
    """
    step = model
    if not isinstance(model, Step):
        step = Step(
            model,
            args,
            kwargs or {},
            loss,
            optimizer,
            batch=batch,
            accumulate=accumulate,
            keep_output=keep_output,
        )
    request = ModuleRequest(type(step.module).__name__, blocks, step=step)
    told, chosen = progress or silent, module_strategies(strategies)
    return _profiled(request, chosen, plan or Plan(), threshold, told, finished)


def _profiled(
    request: ModuleRequest,
    strategies: Sequence[ModuleStrategy],
    plan: Plan,
    threshold: float,
    tell: Progress,
    finished: Callable[[RunRecord], None] | None,
) -> RunRecord:
    (engine,) = open_engines([ENGINE])
    from ckptcli.peers.torch_module import random_states_kept
    from ckptcli.profiling.module_profile import profile_module

    with random_states_kept():
        return profile_module(request, strategies, engine, plan, threshold, tell, finished=finished)


def ledger(*modules: Any) -> AbstractContextManager[ScriptLedger]:
    """An account of what runs inside, as of a step of training.

    Args:
        *modules: by whose paths storages are told, and whose parameters and buffers count, called
            or not; without any those that are called.

    Run one step before: what PyTorch sets up at first use would be in the account.

    Raises:
        MissingLibraryError: PyTorch is not installed.
    """
    open_engines([ENGINE])
    from ckptcli.peers.torch_script_ledger import script_ledger

    return script_ledger(modules)
