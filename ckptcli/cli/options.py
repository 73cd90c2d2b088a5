"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy, registry
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.workloads.base import Workload

Function = TypeVar("Function", bound=Callable[..., Any])

SIZE_OPTIONS = ("layers", "n", "batch", "dtype", "seed")


def complete_strategy(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names from the registry."""
    return [
        CompletionItem(name, help=strategy.summary)
        for name, strategy in registry().items()
        if name.startswith(incomplete)
    ]


def workload_options(layers: int, n: int) -> Callable[[Function], Function]:
    """The options that say what is run; `layers` and `n` are the command's defaults."""
    positive = click.IntRange(1)
    options = (
        _option(
            "--workload",
            "workload_text",
            default="silu",
            metavar="silu|graph:FILE[#INDEX]",
            help="Program to run.",
        ),
        _option(
            "-l", "--layers", type=positive, default=layers, help="Layers of the silu network."
        ),
        _option("-n", "--n", "n", type=positive, default=n, help="Width: weights are n x n."),
        click.option("--batch", type=positive, help="Rows of the input.  [default: n]"),
        _option(
            "--dtype",
            type=click.Choice(["float32", "float64"]),
            default="float32",
            help="Element type.",
        ),
        _option(
            "--seed", type=click.IntRange(0), default=0, help="Seed of the weights and the input."
        ),
        click.option(
            "--config",
            "config_path",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A burn.toml; without it, the nearest one upward is used.",
        ),
    )

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _option(*names: str, **attributes: Any) -> Callable[[Function], Function]:
    return click.option(*names, show_default=True, **attributes)


def open_from_options(ctx: click.Context) -> tuple[list[Workload], list[str]]:
    """The workloads that the options stand for, and warnings about options without effect."""
    from ckptcli.workloads.registry import WorkloadOptions, open_workloads

    params = ctx.params
    options = WorkloadOptions(**{name: params[name] for name in SIZE_OPTIONS})
    workloads = open_workloads(params["workload_text"], options)
    if params["workload_text"].partition(":")[0] == "silu":
        return workloads, []
    given = [
        name
        for name in SIZE_OPTIONS
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    return workloads, [f"--{name} has no effect on a graph file" for name in given]


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
