"""What `ckpt saved` lists of the workload: what each strategy holds after forward, and why."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ckptcli.cli.streams import warn
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.visible import visible

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.saved import PartBytes, SavedTensor
    from ckptcli.options.commands.saved import SavedOptions
    from ckptcli.workloads.base import Workload

SCHEMA = "ckpt.saved/1"


def saved_by_workload(options: SavedOptions, line: Line) -> None:
    """Each program under each strategy.

    Raises:
        CkptError: options that do not go together, or a program that fails.
    """
    from ckptcli.autodiff.device import Device
    from ckptcli.cli.devices import open_device
    from ckptcli.cli.programs import drained, open_programs, places_of, program_notes
    from ckptcli.cli.strategy_choice import check_layers, parse_strategies
    from ckptcli.measure.saved import saved_tensors
    from ckptcli.profiling.memory_needed import check_fits
    from ckptcli.profiling.memory_pass import memory_pass

    quiet = options.notes.quiet
    strategies = parse_strategies(options.strategies.strategy_texts or ("none", "balanced"))
    workloads = open_programs(options.program, options.workload, options.memory)
    notes = program_notes(line, options.program, workloads)
    backend = open_device(options.device, options.workload.dtype, quiet)
    warn(notes, quiet)
    for workload in workloads:
        check_layers(strategies, workload)
        if not options.memory.no_memory_check:
            check_fits(workload, strategies, backend)
    points = places_of(options.program, options.workload, workloads)
    for point, workload in zip(points, drained(workloads)):
        held = {}
        for strategy in strategies:
            with backend.quiet(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UntrackedBackwardWarning)
                found = memory_pass(workload, Device(backend), strategy, False, sys.maxsize)
            warn(dict.fromkeys([*(str(w.message) for w in caught), *found.lints]), quiet)
            held[strategy.name] = saved_tensors(found.trace)
        _print(workload, point, held, options)


def _print(
    workload: Workload,
    point: dict[str, float],
    held: dict[str, list[SavedTensor]],
    options: SavedOptions,
) -> None:
    from ckptcli.cli.json_output import print_json_line

    beside = {name: _beside_by_hand(workload, saved) for name, saved in held.items()}
    if options.data.as_json:
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
        where = {"point": point} if point else {}
        fields = {"schema": SCHEMA, "workload": workload.title, **where}
        print_json_line({**fields, "strategies": strategies})
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.saved_console import render_by_hand, render_saved

    screen = open_screen(options.screen)
    if point:
        click.echo(f"{visible(workload.title)}\n")
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
