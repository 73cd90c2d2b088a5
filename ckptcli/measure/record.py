"""The result of a run, as frozen data: what `--json` prints and what every report reads.

SI base units, the unit in the name: `_s` seconds, `_bytes` bytes. None is "not known", never 0. No
field holds an array value. Lists that grow with the program are cut to what a page can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from ckptcli.measure import OURS
from ckptcli.measure.fields import Count, NotEmpty, Positive, Share, Texts, derived
from ckptcli.measure.machine import Machine
from ckptcli.measure.memory import PeakLive
from ckptcli.measure.origin import Origin
from ckptcli.measure.peer_view import Peer, peer_view
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
    """

    strategy: str
    phase: str
    message: str
    live: PeakLive


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The result of one `ckpt run`. SI base units, the unit in the key: `_s` seconds, `_bytes`
    bytes. A figure that JSON has no number for, infinite or not a number, is null, and a warning
    names it.

    Attributes:
        workload: What was run: its name, its title in words, and its settings.
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

    @property
    def title(self) -> str:
        """The workload in words."""
        return str(self.workload["title"])

    @property
    def reference(self) -> Row | None:
        """What the others are compared with: the one marked, else the first `none`, else none."""
        figured = [row for row in self.rows if row.reason is None]
        marked = [row for row in figured if row.reference]
        named = [row for row in figured if row.strategy == "none"]
        return next(iter([*marked, *named]), None)

    def base_of(self, row: Row) -> Row | None:
        """What a row's memory is held against: `none` of its own engine, else the reference.

        None for a row that is held against nothing, as the reference.
        """
        own = (r for r in self.rows if r.key == (row.engine, "none") and r.reason is None)
        base = self.reference if row.engine == OURS else next(own, self.reference)
        return None if base is row else base

    def label(self, row: Row) -> str:
        """How the row is called in this run: by its strategy where there is one engine."""
        one = len({other.engine for other in self.rows}) == 1
        return row.strategy if one else row.name

    @property
    def rows_with_trace(self) -> list[tuple[Row, Trace]]:
        """The rows whose memory pass is known op by op, and the pass."""
        return [(row, row.trace) for row in self.rows if row.trace is not None]

    @property
    @derived
    def rounds(self) -> Count:
        """Complete counted rounds."""
        return min((len(row.samples) for row in self.rows if row.reason is None), default=0)

    @property
    @derived
    def peers(self) -> Sequence[Peer]:
        """The rows of other engines once more, as readers of older files know them."""
        return tuple(peer_view(row) for row in self.rows if row.engine != OURS)
