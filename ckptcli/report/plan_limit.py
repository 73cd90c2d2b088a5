"""A plan's limit, for the eye: a budget, or what a device has to hold and what remains of it."""

from __future__ import annotations

from ckptcli import units
from ckptcli.planning.device_limit import DeviceLimit


def limit_sentence(limit: DeviceLimit) -> str:
    """What is on the device beside a pass, and the budget that follows."""
    device = f"--device-memory of {units.exact_size(limit.device_bytes)}"
    if limit.taken_bytes >= limit.device_bytes:
        return f"{device} leaves nothing for a pass: {_taken(limit)} are there before it"
    return (
        f"{device} has {_taken(limit)} beside a pass; the budget is what remains, "
        f"{units.exact_size(limit.budget_bytes)}"
    )


def allowed_bytes(budget_bytes: int, is_feasible: bool) -> str:
    """A budget; where nothing fits to the byte, since the smallest one may round to the same."""
    return units.size(budget_bytes) if is_feasible else units.exact_size(budget_bytes)


def fits_word(peak_bytes: int, budget_bytes: int | None) -> str:
    """Whether a row of a plan's table fits; "" without a budget."""
    if budget_bytes is None:
        return ""
    return "fits" if peak_bytes <= budget_bytes else "does not fit"


def least_device_sentence(limit: DeviceLimit, min_budget: int) -> str:
    """The smallest budget as the memory of a device."""
    return f"as --device-memory that is {units.exact_size(limit.taken_bytes + min_budget)}"


def _taken(limit: DeviceLimit) -> str:
    state = "no optimizer's state"
    if limit.optimizer:
        state = f"{units.size(limit.optimizer_bytes)} of {limit.optimizer}'s state"
    return f"{units.size(limit.base_bytes)} of {limit.base} and {state}"
