"""`--module FILE.py:MAKE`: a PyTorch module of the user's own in `ckpt run` and `ckpt saved`."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ckptcli.cli.engines import opened_engines
from ckptcli.cli.exit_codes import FAILED, WRONG
from ckptcli.cli.options import parse_strategies
from ckptcli.cli.stops import Stops
from ckptcli.cli.streams import Progress, has_glyphs, screen_width, use_color, warn
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.measure.record import RunRecord
    from ckptcli.report.screen import Screen

ENGINE = "torch"
TAKEN = frozenset(
    {"module_text", "engine_names", "seed", "reps", "max_time_s", "warmup", "threads", "force"}
    | {"threshold_percent", "timeout_s", "as_json", "color", "width", "quiet", "config_path"}
)
"""The options that mean something for a module, as `strategy_texts` does to `ckpt run`."""

DEFAULT = ("none", "remat")


def module_option(function: Any) -> Any:
    """`--module`."""
    return click.option(
        "--module",
        "module_text",
        metavar="FILE.py:MAKE",
        help="With --engine torch: a PyTorch module of your own; MAKE() gives (module, input).",
    )(function)


def run_module(ctx: click.Context) -> int:
    """`ckpt run --engine torch --module FILE.py:MAKE`."""
    from ckptcli.measure.machine import blas_threads

    params = ctx.params
    notes = _checked(ctx, {"strategy_texts"})
    strategies = _strategies(params["strategy_texts"])
    with blas_threads(params["threads"]):
        profiling = importlib.import_module("ckptcli.profiling.module_profile")
        with opened_engines((ENGINE,), params["threads"]) as ((engine,), _):
            importlib.import_module("ckptcli.peers.torch_module")
            with Stops(params["timeout_s"]) as stops:
                record = _profiled(profiling, strategies, engine, params, stops)
                warn([*notes, *record.warnings], params["quiet"])
                _print_profile(record, params)
                return _tell_failures(record) or stops.exit_code
    return stops.exit_code


def _strategies(texts: Sequence[str]) -> list[Strategy]:
    """`none` first, which the others are compared with, whether it was named or not.

    Raises:
        UnknownNameError, UsageError: as `parse_strategies`.
    """
    named = parse_strategies(texts or DEFAULT)
    others = [strategy for strategy in named if strategy.name != DEFAULT[0]]
    return [*parse_strategies(DEFAULT[:1]), *others]


def _tell_failures(record: RunRecord) -> int:
    """5 for a wrong value, 1 for a strategy under which the module failed, which stderr names."""
    failed = [row for row in record.rows if row.failed]
    for row in failed:
        click.echo(f"Error: {row.strategy}: {row.reason}", err=True)
    if any(row.is_wrong for row in record.rows):
        return WRONG
    return FAILED if failed else 0


def _profiled(
    profiling: Any,
    strategies: Sequence[Strategy],
    engine: Any,
    params: dict[str, Any],
    stops: Stops,
) -> Any:
    from ckptcli.measure.rounds import Plan

    progress = Progress(params["quiet"])

    def tell(phase: str, done: int, most: int) -> None:
        stops.check()
        progress.tell(phase, done, most)

    plan = Plan(params["reps"], params["warmup"], params["max_time_s"], params["seed"])
    try:
        return profiling.profile_module(
            params["module_text"],
            strategies,
            engine,
            plan,
            params["threshold_percent"] / 100.0,
            tell,
        )
    finally:
        progress.end()


def saved_module(ctx: click.Context) -> None:
    """`ckpt saved --engine torch --module FILE.py:MAKE`."""
    params = ctx.params
    warn(_checked(ctx), params["quiet"])
    with opened_engines((ENGINE,), None):
        from ckptcli.measure.module_saved import saved_object
        from ckptcli.peers.torch_module import load_module
        from ckptcli.peers.torch_saved import saved_by_module
        from ckptcli.report.module_saved_console import render_module_saved

        user = load_module(params["module_text"], params["seed"])
        saved = saved_by_module(user, params["seed"])
    if params["as_json"]:
        click.echo(json.dumps(saved_object(user.title, saved)))
    else:
        click.echo(render_module_saved(user.title, saved, _screen(params)), nl=False, color=True)


def _print_profile(record: Any, params: dict[str, Any]) -> None:
    from ckptcli.measure.record_json import record_json
    from ckptcli.report.console import render_run

    if params["as_json"]:
        click.echo(record_json(record), nl=False)
    else:
        click.echo(render_run(record, _screen(params)), nl=False, color=True)


def _screen(params: dict[str, Any]) -> Screen:
    from ckptcli.report.screen import Screen

    return Screen(
        params.get("width") or screen_width(sys.stdout),
        use_color(params.get("color", "auto"), sys.stdout),
        has_glyphs(sys.stdout),
    )


def check_engine(names: Sequence[str]) -> None:
    """Refuse an engine without a module where only modules have one.

    Raises:
        UsageError: an engine is named.
    """
    if names:
        raise UsageError(
            f"--engine {names[0]} needs --module here",
            "`ckpt run --engine` compares the silu network",
        )


def _checked(ctx: click.Context, also: Collection[str] = ()) -> list[str]:
    """Warnings about options without effect; `also` have one too.

    Raises:
        UsageError: another engine than PyTorch, or an option that a module cannot have.
    """
    params = ctx.params
    if tuple(params["engine_names"]) != (ENGINE,):
        raise UsageError(
            f"--module {params['module_text']} needs --engine torch alone", "add `--engine torch`"
        )
    given = [
        name
        for name in params
        if name not in TAKEN
        and name not in also
        and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    refused = {"export_paths": "--export", "conditions": "--fail-on"}
    for name in given:
        if name in refused:
            raise UsageError(f"{refused[name]} does not take a module", "use --json")
    options = {option.name: max(option.opts, key=len) for option in ctx.command.params}
    return [f"{options[name]} has no effect on a module" for name in given]
