"""How much memory a plan may take: `--budget`, or what remains of `--device-memory`.

A device's memory that stands in the settings gives way to a budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError
from ckptcli.options.optimizers import states_of
from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.units import parse_whole_bytes

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.planning.tape.cost_graph import CostGraph


def check_limits(options: PlanOptions, line: Line) -> None:
    """Refuse two limits.

    Raises:
        UsageError: the line has both `--budget` and `--device-memory`.
    """
    has_budget = options.problem.budget_text is not None
    if has_budget and "device_memory" in line.given:
        raise UsageError(
            "--budget and --device-memory are two limits, one on what a pass adds and one on all",
            "leave out one",
        )
    if options.host.transfer_text is not None and options.host.host_memory_text is None:
        lost = "--transfer has no effect without --host-memory: nothing is moved"
        warn([lost], options.notes.quiet)


def optimizer_notes(options: PlanOptions) -> list[str]:
    """A warning about an optimizer's state that is counted in no limit; not for a step of training,
    in which an optimizer takes more than its state.
    """
    is_counted = options.limit.device_memory is not None and options.problem.budget_text is None
    if not options.optimizer.optimizer or is_counted:
        return []
    return ["--optimizer has no effect without --device-memory: a budget is above its state"]


def has_limit(options: PlanOptions) -> bool:
    """Whether there is anything that a plan has to fit."""
    return options.problem.budget_text is not None or options.limit.device_memory is not None


def run_notes(options: PlanOptions) -> list[str]:
    """A warning about a plan for a model that is to be run, where every budget is looked at."""
    if not options.recorded.run or has_limit(options):
        return []
    return ["--run has no effect without a budget or a device: no checkpoints are chosen"]


def check_asked(options: PlanOptions, words: str) -> None:
    """Refuse a program of the user's own, which `words` name, without anything to plan.

    Raises:
        UsageError: such a line.
    """
    if not has_limit(options) and not options.recorded.pareto:
        raise UsageError(
            f"there is nothing to plan for {words}",
            "give --budget SIZE, --device-memory SIZE or --pareto",
        )


def budget_of(text: str | None, hint: str = "give one such as 64MiB") -> int | None:
    """What `--budget` says, in bytes or in the unit of a problem's file; None without it.

    Raises:
        UsageError: no size, with the hint, or one below 0.
    """
    if text is None:
        return None
    try:
        budget = parse_whole_bytes(text)
    except ValueError:
        raise UsageError(f"--budget `{text}` is no size", hint) from None
    if budget < 0:
        raise UsageError(f"--budget {text} is below 0", "give 0 or more")
    return budget


def device_bytes(options: PlanOptions) -> int | None:
    """What `--device-memory` says; None without it, or where a budget is given.

    Raises:
        UsageError: no size above 0.
    """
    from ckptcli.profiling.device_memory import limit_of

    if options.problem.budget_text is not None:
        return None
    return limit_of(options.limit.device_memory)


def program_limit(options: PlanOptions, graph: CostGraph) -> DeviceLimit | None:
    """The device of the options with a program on it; None without one.

    Raises:
        UsageError: its memory is no size above 0.
    """
    memory_bytes = device_bytes(options)
    if memory_bytes is None:
        return None
    name = options.optimizer.optimizer or ""
    parameters_bytes = sum(graph.nodes[node].value_bytes for node in set(graph.parameters.values()))
    return DeviceLimit(
        memory_bytes,
        graph.base_bytes,
        optimizer=name,
        optimizer_bytes=states_of(name) * parameters_bytes,
    )
