"""What `ckpt saved` lists of the workload: what each strategy holds after forward, and why."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ckptcli.cli.streams import warn
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.measure.saved_list import SavedList, SavedProgram

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.by_hand import PartBytes
    from ckptcli.measure.saved import SavedTensor
    from ckptcli.options.commands.saved import SavedOptions
    from ckptcli.workloads.base import Workload


def saved_by_workload(options: SavedOptions, line: Line) -> Iterator[SavedProgram]:
    """Each program under each strategy.

    Raises:
        CkptError: options that do not go together, or a program that fails.
    """
    from ckptcli.autodiff.device import Device
    from ckptcli.cli.devices import open_device
    from ckptcli.cli.programs import drained, open_programs, places_of, program_notes
    from ckptcli.cli.strategy_choice import check_layers, parse_strategies
    from ckptcli.measure.saved import SUMS, saved_tensors
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
        told: list[str] = []
        lists = []
        for strategy in strategies:
            with backend.quiet(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UntrackedBackwardWarning)
                found = memory_pass(workload, Device(backend), strategy, False, sys.maxsize)
            told += dict.fromkeys([*(str(w.message) for w in caught), *found.lints])
            saved = saved_tensors(found.trace)
            by_hand = _beside_by_hand(workload, saved)
            lists.append(SavedList(strategy.name, saved, by_hand=by_hand))
        yield SavedProgram(workload.title, lists, SUMS, point=point, notes=told)


def _beside_by_hand(workload: Workload, saved: Sequence[SavedTensor]) -> list[PartBytes]:
    """The held bytes part by part beside sweeps written by hand, where the workload has them."""
    from ckptcli.measure.by_hand import beside_by_hand

    by_hand = workload.by_hand
    if by_hand is None:
        return []
    return beside_by_hand(saved, by_hand.parts, by_hand.part_of, by_hand.others)
