"""The points that `ckpt fits` asks for: each a process, measured once, and kept as a sweep's.

Invariant: a module that may not fit this machine is never run for real: its shapes come first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ckptcli.cli.streams import Progress
from ckptcli.sweep.fitting.answer import Peak, Refused

if TYPE_CHECKING:
    from ckptcli.cli.subjects.base import Growing
    from ckptcli.measure.row import Row
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.sweep.result import PointResult
    from ckptcli.sweep.store import Store
    from ckptcli.sweep.tasks import Task

PROOF_TIMEOUT_S = 30.0
"""What a point may take that proves the answer, without --timeout."""

TIMED_ROUNDS = 5
GROWTH = 4
"""How much larger a pass may be at twice the size, for it to be run without its shapes first."""

SHARE_OF_MEMORY = 0.5
"""Of what is available, for a module to be run for real."""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """What planning for a size said.

    Attributes:
        least_bytes: the least that a plan is known to take, all that is there included.
        is_least: whether none takes less.
        word: what `-s` takes for the plan within the limit; None where there is none.
        least_word: the same for the plan that takes least.
        knows_no_workspace: whether kernels may take more than it says.
    """

    least_bytes: int
    is_least: bool
    word: str | None
    least_word: str
    knows_no_workspace: bool = False

    @property
    def words(self) -> list[str]:
        """What to try within the limit, the cheapest first."""
        return [] if self.word is None else list(dict.fromkeys([self.word, self.least_word]))


class Points:
    """Points of the sizes that are asked for."""

    def __init__(
        self, options: FitsOptions, growing: Growing, store: Store, limit_bytes: int
    ) -> None:
        self.progress = Progress(options.notes.quiet)
        self.looks_at_values = not options.shapes.is_fake
        self._options = options
        self._growing = growing
        self._store = store
        self._limit_bytes = limit_bytes
        self._done = 0
        self._tried: set[str] = set()
        self._ladder_bytes = 0
        self._workspace_bytes: dict[str, int] = {}
        self._plans: dict[int, PlannedPoint | Refused] = {}

    def peaks(self, size: int) -> dict[str, Peak | Refused]:
        """The peak of each strategy at a size of the ladder; empty where it failed, see `why`.

        A module that was large at the size before is looked at by shapes from there on.
        """
        found = self._peaks(size, {}, self._runs_in_ladder())
        known = [peak.peak_bytes for peak in found.values() if isinstance(peak, Peak)]
        self._ladder_bytes = max([self._ladder_bytes, *known])
        return found

    def peak(self, size: int, strategy: str) -> Peak | Refused:
        """The peak of one strategy at any size: by shapes where it may not fit the machine."""
        more = {"strategy_texts": (strategy,), "no_reference": True}
        is_run = not self._growing.has_shapes
        if is_run or (self.looks_at_values and self._has_room(2 * self._limit_bytes)):
            return self._one(size, more, strategy, True)
        by_shapes = self._one(size, more, strategy, False)
        if not self.looks_at_values or isinstance(by_shapes, Refused):
            return by_shapes
        if not self._has_room(by_shapes.peak_bytes):
            return by_shapes
        return self._one(size, more, strategy, True)

    @property
    def workspace_bytes(self) -> int:
        """The most that kernels took for themselves in a pass of any strategy."""
        return max(self._workspace_bytes.values(), default=0)

    def why(self, size: int) -> str:
        """Why a size has no peaks."""
        result = self._measured(size, self._without_times({}, self.looks_at_values))
        return result.reason or next(iter(result.missing().values()), "it was not reached")

    def times_s(self, size: int, *more_strategies: str) -> dict[str, float]:
        """The median time of a pass of each strategy at a size."""
        more: dict[str, Any] = {}
        if self._options.rounds.reps is None:
            more["reps"] = TIMED_ROUNDS
        if more_strategies:
            chosen = self._options.strategies.strategy_texts or ("none", "balanced")
            more["strategy_texts"] = (*chosen, *more_strategies)
        rows = self._measured(size, more).rows().values()
        known = {row.strategy: row.median_s("total") for row in rows}
        return {name: time_s for name, time_s in known.items() if time_s is not None}

    def plan(self, size: int) -> PlannedPoint | Refused:
        """What planning for a size says; of a module by shapes."""
        if size not in self._plans:
            self._tell(f"plans, {self._growing.over} = {size}")
            self._plans[size] = self._planned(size)
        return self._plans[size]

    def _planned(self, size: int) -> PlannedPoint | Refused:
        from ckptcli.options.commands.plan import PlanOptions
        from ckptcli.options.listing import built, options_of, values_of
        from ckptcli.options.words import child_words
        from ckptcli.sweep.measuring import plan_point

        more = {"device_memory": str(self._limit_bytes), "as_json": True, "quiet": True}
        if self._growing.has_shapes:
            more["is_fake"] = True
        options = options_of(PlanOptions)
        known = {option.name for option in options}
        values = {k: v for k, v in self._values(size, more).items() if k in known}
        words = child_words(options, values_of(built(PlanOptions, values)))
        timeout_s = self._options.rounds.timeout_s or PROOF_TIMEOUT_S
        outcome = plan_point(words, os.getcwd(), timeout_s)
        if outcome.text is None:
            return Refused(outcome.reason or "")
        return _read_plan(json.loads(outcome.text))

    def _peaks(
        self, size: int, more: Mapping[str, Any], has_values: bool
    ) -> dict[str, Peak | Refused]:
        result = self._measured(size, self._without_times(more, has_values))
        record = result.record
        if record is None:
            return {}
        left_out = {failure.strategy: Refused(failure.message) for failure in record.failures}
        return {
            **left_out,
            **{row.strategy: self._peak_of(row, has_values) for row in record.rows},
        }

    def _one(
        self, size: int, more: Mapping[str, Any], strategy: str, has_values: bool
    ) -> Peak | Refused:
        found = self._peaks(size, more, has_values).get(strategy)
        if found is not None:
            return found
        result = self._measured(size, self._without_times(more, has_values))
        return Refused(result.reason or "it was not reached")

    def _peak_of(self, row: Row, has_values: bool) -> Peak | Refused:
        """Of a pass of shapes with the largest workspace that kernels took for real."""
        memory, name = row.memory, row.strategy
        if memory is None or memory.ledger_peak_bytes is None or memory.peak_bytes is None:
            return Refused(row.reason or "it has no peak")
        workspace_bytes = memory.peak_bytes - memory.ledger_peak_bytes
        seen = self._workspace_bytes
        if has_values:
            seen[name] = max(workspace_bytes, seen.get(name, 0))
            return Peak(memory.ledger_peak_bytes, memory.peak_bytes)
        workspace_bytes = seen.get(name, self.workspace_bytes)
        return Peak(memory.ledger_peak_bytes, memory.ledger_peak_bytes + workspace_bytes, False)

    def _runs_in_ladder(self) -> bool:
        if not self.looks_at_values or not self._growing.has_shapes:
            return self.looks_at_values
        return self._has_room(GROWTH * self._ladder_bytes)

    def _has_room(self, needed_bytes: int) -> bool:
        """Whether a pass of so many bytes may be run here."""
        from ckptcli.measure.machine import available_bytes

        free_bytes = available_bytes()
        return free_bytes is not None and needed_bytes <= SHARE_OF_MEMORY * free_bytes

    def _without_times(self, more: Mapping[str, Any], has_values: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"memory_only": True, "reps": None, "processes": 1}
        if self._options.rounds.timeout_s is None:
            options["timeout_s"] = PROOF_TIMEOUT_S
        return {**options, **more, "is_fake": not has_values}

    def _values(self, size: int, more: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a point of this size, by name."""
        from ckptcli.options.listing import values_of

        return self._growing.at({**values_of(self._options), **more}, size)

    def ahead(self, sizes: Sequence[int]) -> None:
        """Measure these sizes of the ladder at once, one a core: they are asked for next."""
        more = self._without_times({}, self._runs_in_ladder())
        self._carry_out([task for size in sizes for task in self._tasks(size, more)])

    def _measured(self, size: int, more: Mapping[str, Any]) -> PointResult:
        """The point; a wrong command line, which every size has, is an error."""
        tasks = self._tasks(size, more)
        self._carry_out(tasks)
        self._tell(f"points, {self._growing.over} = {size}")
        (result,) = self._store.results(tasks)
        return result

    def _tasks(self, size: int, more: Mapping[str, Any]) -> Sequence[Task]:
        from ckptcli.cli.sweep_tasks import sweep_plan
        from ckptcli.options.commands.sweep import SweepOptions
        from ckptcli.options.listing import built, options_of

        known = {option.name for option in options_of(SweepOptions)}
        values = {n: v for n, v in self._values(size, more).items() if n in known}
        return sweep_plan(built(SweepOptions, {**values, "device_memory": None})).tasks

    def _carry_out(self, tasks: Sequence[Task]) -> None:
        """Whatever of them is not there; with --retry what failed is tried once."""
        from ckptcli.sweep.engines.base import Request
        from ckptcli.sweep.engines.local import LocalEngine
        from ckptcli.sweep.running import run_tasks, to_measure

        retried = self._options.results.retry
        new = [task for task in tasks if task.key not in self._tried]
        left = [
            *to_measure(new, self._store, retried),
            *to_measure([task for task in tasks if task.key in self._tried], self._store, False),
        ]
        self._tried |= {task.key for task in tasks}
        run_tasks(left, self._store, LocalEngine(Request(memory_only=True)), _untold)

    def _tell(self, what: str) -> None:
        self._done += 1
        self.progress.tell(what, self._done, self._done + 1)


def _read_plan(plan: Mapping[str, Any]) -> PlannedPoint:
    """What a `ckpt.plan/1` says of the limit."""
    device, least = plan["device_memory"], plan["min_budget"]
    above_bytes = device["base_bytes"] + device["optimizer_bytes"]
    if plan.get("kind") == "module":
        word, least_word = plan["strategy"], plan["set_by"]["strategy"]
    else:
        word = f"budget:{device['budget_bytes']}" if plan["feasible"] else None
        least_word = f"budget:{least}"
    is_least, without = plan["min_budget_proved"], not plan["covers"]["workspace"]
    return PlannedPoint(above_bytes + least, is_least, word, least_word, without)


def _untold(done: int, most: int, text: str) -> None:
    del done, most, text
