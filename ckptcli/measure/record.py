"""The result of a run, as frozen data: what `--json` prints and what every report reads.

SI base units, the unit in the name: `_s` seconds, `_bytes` bytes. None is "not known", never 0. No
field holds an array value. Lists that grow with the program are cut to what a page can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from ckptcli.measure import OURS
from ckptcli.measure.fields import Count, NotEmpty, Positive, Share, Texts, derived
from ckptcli.measure.machine import Machine
from ckptcli.measure.memory import PeakLive
from ckptcli.measure.origin import Origin
from ckptcli.measure.peer_view import Peer, peer_view
from ckptcli.measure.point import beside_point
from ckptcli.measure.row import Row
from ckptcli.measure.trace import Trace

SCHEMA = "ckpt.run/1"


Workload = Annotated[
    dict[str, object],
    Texts((("name", "Name of the workload."), ("title", "The workload in words."))),
]


@dataclass(frozen=True, slots=True)
class Failure:
    """A strategy that ran out of memory.

    Attributes:
        strategy: The strategy; of another engine as ENGINE STRATEGY.
        phase: Where in the pass, for people.
        message: What the array library said, for people.
        live: What was live at that moment; empty in a pass without an account.
        point: Where its program stands among several, as in `strategies`.
    """

    strategy: str
    phase: str
    message: str
    live: PeakLive
    point: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How the row is called that it is instead of."""
        return beside_point(self.point, self.strategy)


@dataclass(frozen=True, slots=True)
class Program:
    """One program of several.

    Attributes:
        point: Where it stands, as in `strategies`.
        workload: Its name, its title in words, and its settings.
    """

    point: dict[str, float]
    workload: Workload


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The result of one `ckpt run`. SI base units, the unit in the key: `_s` seconds, `_bytes`
    bytes. A figure that JSON has no number for, infinite or not a number, is null, and a warning
    names it.

    Attributes:
        workload: What was run: its name, its title in words, and its settings; of several programs
            the settings that they have in common.
        device: Array library and where it computes.
        library: The array library with its version.
        machine: The machine.
        version: Version of ckpt that made the record.
        seed: Seed of the weights, the input, and the order of the first round.
        processes: Processes that the rounds were spread over.
        threshold: A time ratio within this of 1 is `same`; without unit.
        stopped: Why no further round was made, for people.
        partial: Whether the run ended before it was done.
        config: Effective settings of the command, by name.
        warnings: What puts the figures in doubt, for people.
        rows: Each strategy under each engine, in the order in which they were named, ckpt's own
            engine first.
        failures: Strategies that ran out of memory and have no figures.
        children: Of a module of the user's own, the blocks that strategies group, by path.
        origin: When, where and from what the run was made; null in older files.
        programs: Each program that was run, where an option has several values; empty where there
            is one.
    """

    workload: Workload
    device: str
    machine: Machine
    version: str
    seed: Count
    processes: Positive
    threshold: Share
    stopped: str
    partial: bool
    config: dict[str, object]
    warnings: Sequence[str]
    rows: Annotated[Sequence[Row], NotEmpty()] = field(metadata={"key": "strategies"})
    library: str = ""
    failures: Sequence[Failure] = ()
    children: Sequence[str] = ()
    origin: Origin | None = None
    programs: Sequence[Program] = ()

    @property
    def title(self) -> str:
        """The workload in words."""
        return str(self.workload["title"])

    def workload_of(self, row: Row) -> Workload:
        """What the row's own program is: its name, its title in words, and its settings."""
        return next((p.workload for p in self.programs if p.point == row.point), self.workload)

    def title_of(self, row: Row) -> str:
        """The row's own program in words."""
        return str(self.workload_of(row)["title"])

    def reference_of(self, row: Row) -> Row | None:
        """What the rows of a row's program are compared with: the one marked, else the first
        `none`, else none.
        """
        figured = [other for other in self.beside(row) if other.reason is None]
        marked = [other for other in figured if other.reference]
        named = [other for other in figured if other.strategy == "none"]
        return next(iter([*marked, *named]), None)

    def beside(self, row: Row) -> list[Row]:
        """The rows of the row's program."""
        return [other for other in self.rows if other.point == row.point]

    def base_of(self, row: Row) -> Row | None:
        """What a row's memory is held against: `none` of its own engine, else the reference.

        None for a row that is held against nothing, as the reference.
        """
        beside, reference = self.beside(row), self.reference_of(row)
        own = (r for r in beside if r.key == (row.engine, "none") and r.reason is None)
        base = reference if row.engine == OURS else next(own, reference)
        return None if base is row else base

    def label(self, row: Row) -> str:
        """How the row is called in this run: where it stands, and its name there."""
        return beside_point(row.point, self.name_of(row))

    def name_of(self, row: Row) -> str:
        """How the row is called at its point: by its strategy where there is one engine."""
        one = len({other.engine for other in self.rows}) == 1
        return row.strategy if one else row.name

    @property
    def varying(self) -> Sequence[str]:
        """The options that have several values in this run, by their names."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.point))

    @property
    def parts(self) -> list[RunRecord]:
        """A record for each program, as if it had been run alone: for what shows one at a time.

        The figures are those of the whole, whose verdicts are corrected for all comparisons.
        """
        if not self.programs:
            return [self]
        return [self._part(program) for program in self.programs]

    def _part(self, program: Program) -> RunRecord:
        rows = [replace(row, point={}) for row in self.rows if row.point == program.point]
        failures = [replace(f, point={}) for f in self.failures if f.point == program.point]
        return replace(self, workload=program.workload, rows=rows, failures=failures, programs=())

    @property
    def rows_with_trace(self) -> list[tuple[Row, Trace]]:
        """The rows whose memory pass is known op by op, and the pass."""
        return [(row, row.trace) for row in self.rows if row.trace is not None]

    @property
    @derived
    def rounds(self) -> Count:
        """Complete counted rounds; of several programs the fewest of one."""
        return min((len(row.samples) for row in self.rows if row.reason is None), default=0)

    @property
    @derived
    def peers(self) -> Sequence[Peer]:
        """The rows of other engines once more, as readers of older files know them."""
        return tuple(peer_view(row) for row in self.rows if row.engine != OURS)
