"""Strategies as the command line names them, and what they ask of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.verify.fault import Fault
    from ckptcli.workloads.base import Workload


def parse_strategies(texts: Sequence[str]) -> list[Strategy]:
    """The strategies by name, in order.

    Raises:
        UnknownNameError: no strategy has one of these names.
        UsageError: a strategy is named twice.
    """
    strategies = [parse_strategy(text) for text in texts]
    names = [strategy.name for strategy in strategies]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"strategy `{name}` is given twice", "name each strategy once")
    return strategies


def check_layers(strategies: Sequence[Strategy], workload: Workload) -> None:
    """Refuse a strategy that groups layers on a program that has none.

    Raises:
        UsageError: such a strategy, and such a program.
    """
    for strategy in strategies:
        if strategy.needs_layers and not workload.layer_count:
            raise UsageError(
                f"strategy `{strategy.name}` needs layers, and `{workload.title}` has none",
                "use `none` or `balanced`; in a program of your own, go through `device.layers(n)`",
            )


def perturbed_strategies(
    text: str | None, strategies: Sequence[Strategy], workloads: Sequence[Workload]
) -> tuple[list[Strategy], Fault | None]:
    """The strategies with the fault that `--perturb-replay` names, and that fault.

    Raises:
        UsageError: a text that names none, or a step that none of the programs has.
    """
    if text is None:
        return list(strategies), None
    from ckptcli.verify.fault import parse_fault
    from ckptcli.verify.perturb import perturbed

    fault = parse_fault(text)
    most = max(workload.layer_count for workload in workloads)
    if fault.least_steps > most:
        raise UsageError(
            f"--perturb-replay `{text}` names step {fault.least_steps}, and the program has {most}",
            f"use a step from 1 to {most}" if most else "use a workload with steps, `trg`",
        )
    return [perturbed(strategy, fault) for strategy in strategies], fault
