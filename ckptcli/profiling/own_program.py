"""A program of the user's own in another library, under strategies: what any such run shares.

Each strategy has a network and a row. All are compared with `none`, which is the first; one that
has no network has a row that says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ckptcli.measure.analysis import analysed
from ckptcli.measure.machine import read_machine
from ckptcli.measure.origin import Origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Clock, Plan, Rounds, run_rounds
from ckptcli.measure.row import Row
from ckptcli.measure.subject import Subject
from ckptcli.peers.base import Values
from ckptcli.profiling.divergence import loss_warning
from ckptcli.profiling.rows import passes_of
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

    def measured(self, passes: Sequence[OwnPass], tell: Tell, finished: Finished | None) -> Rounds:
        """One watched pass of each, then the rounds; `finished` gets the record after each."""
        for done, this in enumerate(passes):
            tell("memory", done, len(passes))
            this.measure()
        return run_rounds(
            {this.row.name: this.network for this in passes if this.network is not None},
            self.plan,
            reference=passes[0].row.name,
            clock=self.clock,
            between=lambda done, most: tell("timing", done, most),
            finished=None
            if finished is None
            else lambda rounds: finished(self.record(passes, rounds, True)),
        )

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
                rows=tuple(_finished(this, rounds) for this in passes),
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
        count = f"{len(paths)} of {len(values.gradients)} gradients"
        yield f"{name}: {count} are not finite, among them that of `{paths[0]}`"
