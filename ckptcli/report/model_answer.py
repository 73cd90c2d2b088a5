"""The first sentences of a plan for a model of the user's own: what its budget allows."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.planning.model_plan import ModelPlan
from ckptcli.report.plan_limit import allowed_bytes, least_device_sentence

SPARED = 0.05
"""A peak that falls by less of itself has not fallen."""


def answer_sentences(plan: ModelPlan, nothing: str, how: str) -> Iterator[str]:
    """What the plan answers. `nothing` is what was looked for, where the budget allows none; `how`
    the best checkpoints and what they cost, "" if it has none.
    """
    if plan.budget is None:
        yield f"{plan.title}: what every budget buys"
        return
    within = allowed_bytes(plan.budget, plan.feasible)
    allowed = f"{plan.title}, within {within}"
    if not plan.feasible:
        yield f"{allowed}: no {nothing} was found"
        yield f"the smallest budget that one was found for is {units.exact_size(plan.least_bytes)}"
        if plan.limit is not None:
            yield least_device_sentence(plan.limit, plan.least_bytes)
        return
    peak = f"peak {units.exact_size(plan.peak_bytes)}"
    yield f"{allowed}: {peak} {f'with {how}' if how else 'without a checkpoint'}"
