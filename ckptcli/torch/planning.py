"""From inside a training script: checkpoints around the blocks that a budget asks for.

Invariant: but for these checkpoints the model is what it was, its gradients and random states too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ckptcli.errors import PlanError, UsageError
from ckptcli.peers.base import open_engines
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_step import Step
from ckptcli.profiling.profile import silent
from ckptcli.units import parse_whole_bytes, size

if TYPE_CHECKING:
    from ckptcli.planning.blocks.plan import ModulePlan
    from ckptcli.profiling.job import Progress

ENGINE = "torch"


def auto_checkpoint(
    model: Any,
    step: Any,
    budget: str | int | None = None,
    *,
    device_memory: str | int | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: Any = None,
    blocks: str | None = None,
    cost: str = "flops",
    apply: bool = True,
    progress: Progress | None = None,
) -> ModulePlan:
    """Put the cheapest checkpoints around blocks of a model with which a step fits a budget.

    The plan is that of `ckpt plan --module`; what is done to the model is its `code`.

    Args:
        model: the `torch.nn.Module`; planned for on a copy.
        step: a `Step`, whose module may be left to `model`, or what the model is given: a tuple of
            arguments, or the only one.
        budget: bytes, or a size, `8GB`: what a step may add above parameters, buffers, input and
            the optimizer's state.
        device_memory: instead, the most in all, these included: `24GB`.
        loss: as in `Step`, where `step` is none; likewise `optimizer`.
        optimizer: an optimizer over parameters of the model, or what makes one.
        blocks: which parts are its blocks, as with `--blocks`.
        cost: what computing again costs: flops, time or count.
        apply: whether the model gets the checkpoints; else the plan alone is made.
        progress: told how far the passes are.

    What the command tells beside a plan is a warning: that the model checkpoints itself, say.

    Raises:
        MissingLibraryError: PyTorch is not installed.
        PlanError: nothing fits, with the smallest budget that does; the plan's gradients are
            others; or nothing puts the checkpoints on this model.
        UsageError: no size or two, no module with an input, or one without blocks.
        ProgramError: it fails, does something else each time, or cannot be copied.
    """
    from ckptcli.profiling.module_plan import PlanRequest, plan_module

    budget_bytes, device_bytes = _limits(budget, device_memory)
    open_engines([ENGINE])
    from ckptcli.peers.torch_module import random_states_kept

    given = step if isinstance(step, Step) else Step(model, step, loss=loss, optimizer=optimizer)
    request = ModuleRequest(type(model).__name__, blocks, step=replace(given, module=model))
    with random_states_kept():
        plan, notes = plan_module(
            PlanRequest(request, budget_bytes, cost, device_bytes=device_bytes), progress or silent
        )
    _check_gradients(plan, request.text)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    _check_fits(plan, request.text)
    if apply and plan.names_chosen:
        _put_on(model, plan, request.text)
    return plan


def _check_fits(plan: ModulePlan, text: str) -> None:
    if plan.best is None:
        least = plan.lowest.peak_bytes
        on_device = "" if plan.limit is None else f", {plan.limit.taken_bytes + least} in all"
        raise PlanError(
            f"no set of blocks of `{text}` fits {size(plan.budget)}",
            f"the smallest budget that one was found for is {least} bytes{on_device}",
        )


def _check_gradients(plan: ModulePlan, text: str) -> None:
    if plan.changes_gradients:
        raise PlanError(
            f"{plan.strategy} on `{text}`: its gradients are not those of `none`",
            "have its blocks compute the same when they are computed again; `ckpt check --module` "
            "says where they do not",
        )


def _put_on(model: Any, plan: ModulePlan, text: str) -> None:
    if plan.code is None:
        raise PlanError(
            f"no code that was tried puts {plan.strategy} on `{text}` as planned",
            "make these checkpoints in its forward, or turn off those that it makes itself",
        )
    exec(plan.code, {"model": model})  # what is done can be read, and be pasted instead


def _limits(
    budget: str | int | None, device_memory: str | int | None
) -> tuple[int | None, int | None]:
    """Both in bytes.

    Raises:
        UsageError: not one of both, or no size.
    """
    if (budget is None) == (device_memory is None):
        given = "neither budget nor" if budget is None else "both budget and"
        raise UsageError(f"auto_checkpoint is given {given} device_memory", "give one of them")
    return _bytes("budget", budget), _bytes("device_memory", device_memory)


def _bytes(name: str, text: str | int | None) -> int | None:
    try:
        size_bytes = parse_whole_bytes(text) if isinstance(text, str) else text
    except ValueError:
        size_bytes = -1
    if size_bytes is not None and size_bytes < 0:
        raise UsageError(f"{name} `{text}` is no size", "give bytes, or one such as 8GB")
    return size_bytes
