"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ckptcli.checkpoint.strategies.registry import parse_strategy, registry
from ckptcli.cli.names import completing
from ckptcli.errors import UsageError
from ckptcli.verify.fault import KINDS, SIGN, parse_fault
from ckptcli.workloads.options import OptionText, WorkloadOptions, option_texts

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.verify.fault import Fault
    from ckptcli.workloads.base import Workload

Decorator = Callable[[Any], Any]

MOST_SECONDS = 1e8
"""Three years; a timer does not take much more."""


class FiniteRange(click.FloatRange):
    """A number within bounds; `nan`, which is within any, is none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def _strategies() -> dict[str, str]:
    return {name: strategy.summary for name, strategy in registry().items()}


def _workloads() -> dict[str, None]:
    from ckptcli.workloads.registry import workload_names

    return dict.fromkeys(workload_names())


def strategy_option(default: str) -> Decorator:
    """`--strategy`; `default` says in words what the command takes without it."""
    return click.option(
        "-s",
        "--strategy",
        "strategy_texts",
        multiple=True,
        metavar="NAME",
        shell_complete=completing(_strategies),
        help=f"Strategy, repeatable; `ckpt strategies` lists them.  [default: {default}]",
    )


def workload_options(**defaults: int) -> Decorator:
    """The options that say what is run; `defaults` are the command's own, by name."""
    return _all_of(
        _option(
            "--workload",
            "workload_text",
            default="silu",
            metavar="NAME[:ARGUMENT]|FILE.py:FUNCTION",
            shell_complete=completing(_workloads),
            help="Program to run: one by its name, of which a wrong one lists all, or your own.",
        ),
        *(
            _size_option(name, text, defaults.get(name, default))
            for name, (text, default) in option_texts().items()
        ),
        click.option(
            "--config",
            "config_path",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A burn.toml; without it, the nearest one upward is used.",
        ),
    )


def _size_option(name: str, text: OptionText, default: Any) -> Decorator:
    flags = [f"-{text.short}"] if text.short else []
    words = f"{text.help}  [default: {text.default_text}]" if text.default_text else text.help
    return click.option(
        *flags,
        f"--{name.replace('_', '-')}",
        name,
        type=_click_type(text, default),
        default=default,
        show_default=not text.default_text,
        help=words,
    )


def _click_type(text: OptionText, default: object) -> Any:
    """The type of the default; whole numbers where that is None."""
    if text.choices:
        return click.Choice(text.choices)
    if isinstance(default, str):
        return click.STRING
    if isinstance(default, float):
        return FiniteRange(text.at_least)
    return click.IntRange(None if text.at_least is None else int(text.at_least))


def perturb_option(function: Any) -> Any:
    """`--perturb-replay`, for the commands that can tell a wrong recomputation."""
    return click.option(
        "--perturb-replay",
        "perturb_text",
        metavar="FAULT",
        help=f"Compute again wrongly, to see it caught: {', '.join(KINDS)} or {SIGN}.",
    )(function)


def perturbed_strategies(
    ctx: click.Context, strategies: Sequence[Strategy], workloads: Sequence[Workload]
) -> tuple[list[Strategy], Fault | None]:
    """The strategies with the fault that `--perturb-replay` names, and that fault.

    Raises:
        UsageError: a text that names none, or a step that none of the programs has.
    """
    text = ctx.params["perturb_text"]
    if text is None:
        return list(strategies), None
    from ckptcli.verify.perturb import perturbed

    fault = parse_fault(text)
    most = max(workload.layer_count for workload in workloads)
    if fault.least_steps > most:
        raise UsageError(
            f"--perturb-replay `{text}` names step {fault.least_steps}, and the program has {most}",
            f"use a step from 1 to {most}" if most else "use a workload with steps, `trg`",
        )
    return [perturbed(strategy, fault) for strategy in strategies], fault


def measuring_options(function: Any) -> Any:
    """The options that say how long and against what is measured."""
    seconds = FiniteRange(0, MOST_SECONDS, min_open=True)
    return _all_of(
        click.option(
            "--reps",
            type=click.IntRange(1),
            metavar="R",
            help="Timed rounds; each runs every strategy once.  [default: until the "
            "intervals are narrow]",
        ),
        _option(
            "--max-time",
            "max_time_s",
            type=seconds,
            default=10.0,
            metavar="SECONDS",
            help="Without --reps: begin no round after this, but make at least 9.",
        ),
        _option(
            "--warmup",
            type=click.IntRange(0),
            default=1,
            help="Rounds before them: shown, never in a median.",
        ),
        _option(
            "--processes",
            type=click.IntRange(1),
            default=1,
            metavar="P",
            help="Spread the rounds over P fresh processes; makes records comparable.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(1),
            help="Threads of the BLAS, of the array library and of PyTorch.  [default: as they "
            "are]",
        ),
        _option(
            "--threshold",
            "threshold_percent",
            type=FiniteRange(0, 50),
            default=2.0,
            metavar="PERCENT",
            help="Times within this of the reference's are `same`.",
        ),
        click.option(
            "--no-reference",
            is_flag=True,
            help="With one strategy: do not run `none` to compare with.",
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=seconds,
            metavar="SECONDS",
            help="Stop after this and exit with 124; complete rounds are reported.",
        ),
    )(function)


def output_options(function: Any) -> Any:
    """The options that say where the result goes and what it looks like."""
    return _all_of(
        click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON object, schema ckpt.run/1."
        ),
        click.option(
            "--export",
            "export_paths",
            multiple=True,
            metavar="FILE",
            help="Write the result too, repeatable; the suffix says the format: .json "
            ".csv .md .html .trace.json .svg .png; - is stdout.",
        ),
        click.option("--format", "format_name", metavar="NAME", help="The format of `--export -`."),
        _option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="Colour in the output.",
        ),
        click.option(
            "--width",
            type=click.IntRange(40),
            metavar="COLUMNS",
            help="Width of the screen.  [default: the terminal's]",
        ),
        click.option("-v", "--verbose", is_flag=True, help="List what was live at the peak."),
    )(function)


def gate_options(function: Any) -> Any:
    """The options that let a script decide on the exit code."""
    return _all_of(
        click.option(
            "--fail-on",
            "conditions",
            multiple=True,
            metavar="EXPR",
            help="Exit with 3 if it holds, repeatable: [STRATEGY.]METRIC OP VALUE[%], "
            "METRIC of time, forward, backward, saved_bytes, peak_bytes, recomputed.",
        ),
        click.option("--strict", is_flag=True, help="Exit with 4 if a time verdict is `unclear`."),
    )(function)


def _all_of(*options: Decorator) -> Decorator:
    """The options as one decorator, in this order in the help."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _option(*names: str, **attributes: Any) -> Decorator:
    return click.option(*names, show_default=True, **attributes)


def open_from_options(ctx: click.Context) -> tuple[list[Workload], list[str]]:
    """The workloads that the options stand for, and warnings about options without effect."""
    from ckptcli.measure.machine import within_available_memory
    from ckptcli.workloads.registry import open_workloads, options_without_effect

    params = ctx.params
    options = WorkloadOptions(**{name: params[name] for name in option_texts()})
    with nullcontext() if params.get("force") else within_available_memory():  # a program is run
        workloads = open_workloads(params["workload_text"], options)
    workload, unused = options_without_effect(params["workload_text"])
    notes = [note for opened in workloads for note in getattr(opened, "notes", ())]
    return workloads, notes + [
        has_no_effect(f"--{name.replace('_', '-')}", workload)
        for name in unused
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]


def has_no_effect(flag: str, workload: str) -> str:
    """The warning about an option that a workload does not look at."""
    return f"{flag} has no effect on workload `{workload}`"


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
