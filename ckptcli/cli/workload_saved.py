"""What `ckpt saved` lists of the workload: what each strategy holds after forward, and why."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
    from ckptcli.cli.programs import opened_programs
    from ckptcli.cli.strategy_choice import parse_strategies
    from ckptcli.measure.saved import SUMS, saved_tensors
    from ckptcli.profiling.memory_pass import memory_pass

    strategies = parse_strategies(options.strategies.strategy_texts or ("none", "balanced"))
    programs = opened_programs(options, line)
    backend = programs.backend
    programs.check(strategies)
    for point, workload in programs.each():
        notes: list[str] = []
        lists = []
        for strategy in strategies:
            with backend.quiet(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UntrackedBackwardWarning)
                found = memory_pass(workload, Device(backend), strategy, False, sys.maxsize)
            notes += dict.fromkeys([*(str(w.message) for w in caught), *found.lints])
            saved = saved_tensors(found.trace)
            by_hand = _beside_by_hand(workload, saved)
            lists.append(SavedList(strategy.name, saved, by_hand=by_hand))
        yield SavedProgram(workload.title, lists, SUMS, point=point, notes=notes)


def _beside_by_hand(workload: Workload, saved: Sequence[SavedTensor]) -> list[PartBytes]:
    """The held bytes part by part beside sweeps written by hand, where the workload has them."""
    from ckptcli.measure.by_hand import beside_by_hand

    by_hand = workload.by_hand
    if by_hand is None:
        return []
    return beside_by_hand(saved, by_hand.parts, by_hand.part_of, by_hand.others)
