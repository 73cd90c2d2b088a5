"""A program of the user's own in another library, under strategies: what any such run shares.

Each strategy has a network and a row. All are compared with `none`, which is the first; one that
has no network has a row that says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ckptcli.measure.analysis import analysed
from ckptcli.measure.machine import read_machine
from ckptcli.measure.origin import Origin
from ckptcli.measure.record import Failure, RunRecord
from ckptcli.measure.rounds import Clock, Plan, Rounds, run_rounds
from ckptcli.measure.row import Row
from ckptcli.measure.subject import Subject
from ckptcli.peers.base import Values
from ckptcli.profiling.device_memory import check_limit
from ckptcli.profiling.divergence import loss_warning
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.profiling.rows import passes_of
from ckptcli.units import are, count
from ckptcli.version import VERSION

REFERENCE = "none"

Tell = Callable[[str, int, int], None]
Finished = Callable[[RunRecord], None]


class OwnPass(Protocol):
    """One strategy: its network, and the row so far. No network, no figures."""

    row: Row

    @property
    def network(self) -> Subject | None: ...

    def measure(self) -> None:
        """Fill in what one pass holds, and how far its values are from those of `none`."""


@dataclass(slots=True)
class OwnRun:
    """What the record says of the program, and how it is measured.

    Attributes:
        workload: of the record: the program's name, title and what else is known of it.
        library: name and version of the library.
        notes: what puts the figures in doubt, for people.
        children: what strategies group, by path.
        clock: seconds from any start, that wait for the device.
        limit_bytes: of a device that is not at hand; None for none.
        failures: what does not fit in it, which has no row.
    """

    workload: dict[str, object]
    device: str
    library: str
    plan: Plan
    threshold: float
    config: dict[str, object]
    origin: Origin
    notes: Sequence[str] = ()
    children: Sequence[str] = ()
    clock: Clock = time.perf_counter
    limit_bytes: int | None = None
    failures: list[Failure] = field(default_factory=list)

    def measured(self, passes: Sequence[OwnPass], tell: Tell, finished: Finished | None) -> Rounds:
        """One watched pass of each, then the rounds; `finished` gets the record after each.

        Raises:
            PassOutOfMemory: nothing fits.
        """
        for done, this in enumerate(passes):
            tell("memory", done, len(passes))
            this.measure()
        self.hold_to_limit(passes)
        subjects = {
            this.row.name: this.network
            for this in self._fitting(passes)
            if this.network is not None
        }
        return run_rounds(
            subjects,
            self.plan,
            reference=next((p.row.name for p in passes if p.row.name in subjects), None),
            clock=self.clock,
            between=lambda done, most: tell("timing", done, most),
            finished=None
            if finished is None
            else lambda rounds: finished(self.record(passes, rounds, True)),
        )

    def hold_to_limit(self, passes: Sequence[OwnPass]) -> None:
        """Leave out what peaks above the limit.

        Raises:
            PassOutOfMemory: nothing is left.
        """
        for this in passes:
            memory = this.row.memory
            if memory is not None:
                try:
                    check_limit(this.row.strategy, memory, self.limit_bytes)
                except PassOutOfMemory as error:
                    self.failures += error.failures
        if self.failures and not any(p.row.memory is not None for p in self._fitting(passes)):
            raise PassOutOfMemory(*self.failures)

    def _fitting(self, passes: Sequence[OwnPass]) -> list[OwnPass]:
        left_out = {failure.strategy for failure in self.failures}
        return [this for this in passes if this.row.strategy not in left_out]

    def record(self, passes: Sequence[OwnPass], rounds: Rounds, partial: bool) -> RunRecord:
        """The record with the samples of the rounds."""
        return analysed(
            RunRecord(
                workload=self.workload,
                device=self.device,
                machine=read_machine(),
                version=VERSION,
                seed=self.plan.seed,
                processes=1,
                threshold=self.threshold,
                stopped=rounds.stopped,
                partial=partial,
                config=self.config,
                warnings=tuple(self.notes),
                rows=tuple(_finished(this, rounds) for this in self._fitting(passes)),
                failures=tuple(self.failures),
                library=self.library,
                children=tuple(self.children),
                origin=self.origin,
            )
        )


def _finished(this: OwnPass, rounds: Rounds) -> Row:
    """The row with the samples of the rounds."""
    if this.network is None:
        return this.row
    splits = bool(getattr(this.network, "splits", True))
    return replace(this.row, passes=passes_of(rounds, this.row.name, splits))


def divergence(name: str, values: Values, parameters: Sequence[str]) -> Iterator[str]:
    """A warning about a loss, and one about gradients, that are not finite."""
    text = loss_warning(name, values.loss)
    if text is not None:
        yield text
    paths = [
        path
        for path, gradient in zip(parameters, values.gradients)
        if not np.isfinite(gradient).all()
    ]
    if paths:
        share = f"{len(paths)} of {count(len(values.gradients), 'gradient')}"
        which = f"{'that' if len(paths) == 1 else 'among them that'} of `{paths[0]}`"
        yield f"{name}: {share} {are(len(paths))} not finite, {which}"
