"""The first sentences of a plan for a model of the user's own: what its budget allows."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.planning.blocks.plan import ModulePlan
from ckptcli.planning.functions.plan import FunctionPlan
from ckptcli.report.device_limit import least_device_sentence


def answer_sentences(
    plan: ModulePlan | FunctionPlan, nothing: str, least_bytes: int, how: str
) -> Iterator[str]:
    """What the plan answers. `nothing` is what was looked for, where the budget allows none;
    `least_bytes` the least peak that was found; `how` the best checkpoints and what they
    cost, "" if it has none.
    """
    if plan.budget is None:
        yield f"{plan.title}: what every budget buys"
        return
    allowed = f"{plan.title} within {units.size(plan.budget)}"
    if plan.best is None:
        least = f"{units.size(least_bytes)} ({least_bytes} bytes)"
        yield f"{allowed}: no {nothing} was found"
        yield f"the smallest budget that one was found for is {least}"
        if plan.limit is not None:
            yield least_device_sentence(plan.limit, least_bytes)
        return
    peak_bytes = plan.best.peak_bytes
    peak = f"peak {units.size(peak_bytes)} ({peak_bytes} bytes)"
    yield f"{allowed}: {peak} {f'with {how} once more' if how else 'without a checkpoint'}"
