"""`ckpt saved`: what is held after the forward pass, and why."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.devices import device_options, open_device
from ckptcli.cli.engines import engine_option
from ckptcli.cli.modules import check_engine, module_option, saved_module
from ckptcli.cli.options import (
    check_layers,
    open_from_options,
    parse_strategies,
    strategy_option,
    workload_options,
)
from ckptcli.cli.streams import has_glyphs, screen_width, use_color, warn
from ckptcli.errors import UntrackedBackwardWarning

if TYPE_CHECKING:
    from ckptcli.measure.saved import PartBytes, SavedTensor
    from ckptcli.workloads.base import Workload

SCHEMA = "ckpt.saved/1"


@click.command("saved")
@strategy_option(default="none and balanced")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings.")
@click.option("--force", is_flag=True, help="Run what cannot fit in memory.")
@workload_options(layers=2, n=64)
@device_options
@engine_option
@module_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    strategy_texts: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    force: bool,
    **_: Any,
) -> None:
    """List what each strategy holds after forward: node, op, bytes, line, consumers, end.

    Each storage counts once; parameters, input and the loss are left out.
    """
    from ckptcli.autodiff.device import Device
    from ckptcli.measure.saved import saved_tensors
    from ckptcli.profiling.memory_needed import check_fits
    from ckptcli.profiling.memory_pass import memory_pass

    if ctx.params["module_text"] is not None:
        saved_module(ctx)
        return
    check_engine(ctx.params["engine_names"])
    strategies = parse_strategies(strategy_texts or ("none", "balanced"))
    workloads, notes = open_from_options(ctx)
    backend = open_device(ctx.params)
    warn(notes, quiet)
    for workload in workloads:
        check_layers(strategies, workload)
        if not force:
            check_fits(workload, strategies, backend)
    for workload in workloads:
        held = {}
        for strategy in strategies:
            with backend.quiet(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UntrackedBackwardWarning)
                found = memory_pass(workload, Device(backend), strategy, False, sys.maxsize)
            warn(dict.fromkeys(str(warning.message) for warning in caught), quiet)
            held[strategy.name] = saved_tensors(found.trace)
        _print(workload, held, as_json)


def _print(workload: Workload, held: dict[str, list[SavedTensor]], as_json: bool) -> None:
    from ckptcli.report.console import Screen
    from ckptcli.report.saved_console import render_by_hand, render_saved

    beside = {name: _beside_by_hand(workload, saved) for name, saved in held.items()}
    if as_json:
        strategies = [
            {
                "strategy": name,
                "saved_tensors": len(saved),
                "saved_bytes": sum(tensor.bytes for tensor in saved),
                "saved": [asdict(tensor) for tensor in saved],
                "by_hand": [asdict(part) for part in beside[name]],
            }
            for name, saved in held.items()
        ]
        fields = {"schema": SCHEMA, "workload": workload.title, "strategies": strategies}
        click.echo(json.dumps(fields))
        return
    screen = Screen(screen_width(sys.stdout), use_color("auto", sys.stdout), has_glyphs(sys.stdout))
    for name, saved in held.items():
        click.echo(render_saved(name, saved, screen), nl=False, color=True)
        if beside[name]:
            click.echo(render_by_hand(beside[name], screen), nl=False, color=True)


def _beside_by_hand(workload: Workload, saved: Sequence[SavedTensor]) -> list[PartBytes]:
    """The held bytes part by part beside sweeps written by hand, where the workload has them."""
    from ckptcli.measure.saved import beside_by_hand

    by_hand = workload.by_hand
    if by_hand is None:
        return []
    return beside_by_hand(saved, by_hand.parts, by_hand.part_of, by_hand.others)
