"""What strategies hold after forward, whatever the program and the library: lists and their sums.

Invariant: sums and totals leave out what takes no memory of its own; the list has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ckptcli.measure.by_hand import PartBytes
from ckptcli.measure.codec import written
from ckptcli.options.subjects import WORKLOAD

SCHEMA = "ckpt.saved/1"


@dataclass(frozen=True, slots=True)
class SavedWords:
    """An entry in the words of the list's columns; "" for what is not known of it.

    Attributes:
        node: Its number in ckpt's engine.
        module: Path and class of the module that made it.
        op: What made it.
        name: What the program calls it.
        made_at: The line that made it.
        function, within: The user's function that led to it; the calls and loops that it is in.
        held_by: Steps of the backward pass that hold it.
        freed_after: The step after which it is gone.
        why: What it is held for.
    """

    node: str = ""
    module: str = ""
    op: str = ""
    name: str = ""
    made_at: str = ""
    function: str = ""
    within: str = ""
    held_by: str = ""
    freed_after: str = ""
    why: str = ""


class SavedEntry(Protocol):
    """One storage, as whoever watched it knows it: a dataclass, whose fields are its keys."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def not_held_as(self) -> str:
        """What it is where it takes no memory of its own; "" where it counts."""

    def words(self) -> SavedWords: ...

    def keys(self, depth: int | None) -> Mapping[str, str]:
        """By what sums are taken -> its key there; of paths the first `depth` names, all for None.

        What has no key is in no sum.
        """


@dataclass(frozen=True, slots=True)
class SavedTotal:
    """What is held together.

    Attributes:
        key: The path, class, op, line, function or name.
        tensors: How many storages.
        bytes: Of all of them.
        share: Of all that is held, from 0 to 1.
    """

    key: str
    tensors: int
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class SavedList:
    """What one strategy holds.

    Attributes:
        strategy: Its name, as on the command line.
        saved: The entries, largest first.
        reason: Why there is no list; null where there is one.
        by_hand: Of a workload that has sweeps written by hand, what they keep beside it.
    """

    strategy: str
    saved: Sequence[SavedEntry] = ()
    reason: str | None = None
    by_hand: Sequence[PartBytes] = ()

    @property
    def held(self) -> Sequence[SavedEntry]:
        """Those that count."""
        return [entry for entry in self.saved if not entry.not_held_as]

    @property
    def saved_tensors(self) -> int:
        """How many count."""
        return len(self.held)

    @property
    def saved_bytes(self) -> int:
        """What these take."""
        return sum(entry.bytes for entry in self.held)

    def totals(self, by: str, depth: int | None = None) -> list[SavedTotal]:
        """The sums by this, largest first."""
        whole = self.saved_bytes
        groups: dict[str, list[int]] = {}
        for entry in self.held:
            keys = entry.keys(depth)
            if by in keys:
                groups.setdefault(keys[by], []).append(entry.bytes)
        totals = [
            SavedTotal(key, len(sizes), sum(sizes), sum(sizes) / whole if whole else 0.0)
            for key, sizes in groups.items()
        ]
        return sorted(totals, key=lambda total: -total.bytes)


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """The lists of one program.

    Attributes:
        title: The program in words.
        lists: Of each strategy.
        sums: By what sums are taken.
        kind: One of `SUBJECTS`.
        point: The value of each option that has several.
        as_it_is: Of a program of the user's own in a library without a strategy of ckpt's; it is
            what is shown where no strategy is named.
        notes: What a reader of the figures has to know.
    """

    title: str
    lists: Sequence[SavedList]
    sums: Sequence[str]
    kind: str = WORKLOAD
    point: Mapping[str, float] = field(default_factory=dict)
    as_it_is: SavedList | None = None
    notes: Sequence[str] = ()

    @property
    def shown(self) -> Sequence[SavedList]:
        """What is looked at."""
        return self.lists if self.lists or self.as_it_is is None else [self.as_it_is]


def saved_object(program: SavedProgram, depth: int | None = None) -> dict[str, Any]:
    """The lists as plain data."""
    own = {} if program.as_it_is is None else _list_object(program.as_it_is, program, depth)
    return {
        "schema": SCHEMA,
        "workload": program.title,
        program.kind: program.title,
        **({"point": dict(program.point)} if program.point else {}),
        **own,
        "strategies": [
            {"strategy": found.strategy, "reason": found.reason}
            | (_list_object(found, program, depth) if found.reason is None else {})
            for found in program.lists
        ],
    }


def _list_object(found: SavedList, program: SavedProgram, depth: int | None) -> dict[str, Any]:
    return {
        "saved_tensors": found.saved_tensors,
        "saved_bytes": found.saved_bytes,
        "saved": written(found.saved),
        "by_hand": written(found.by_hand),
        **{f"by_{by}": written(found.totals(by, depth)) for by in program.sums},
    }
