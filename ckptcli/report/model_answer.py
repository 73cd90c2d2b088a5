"""The first sentences of a plan for a model of the user's own: what its budget allows."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.planning.blocks.plan import ModulePlan
from ckptcli.planning.functions.plan import FunctionPlan
from ckptcli.report.device_limit import allowed_bytes, least_device_sentence


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
    within = allowed_bytes(plan.budget, plan.best is not None)
    allowed = f"{plan.title}, within {within}"
    if plan.best is None:
        yield f"{allowed}: no {nothing} was found"
        yield f"the smallest budget that one was found for is {units.exact_size(least_bytes)}"
        if plan.limit is not None:
            yield least_device_sentence(plan.limit, least_bytes)
        return
    peak = f"peak {units.exact_size(plan.best.peak_bytes)}"
    yield f"{allowed}: {peak} {f'with {how}' if how else 'without a checkpoint'}"
