"""What an experiment is: a workload that measures something of its own, without strategies.

`ckpt run` carries it out; no other command takes it. It gets a clock and fills in findings, row by
row, so that what is complete survives an interrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ckptcli.backends.base import Backend

Clock = Callable[[], float]
"""Seconds."""

Tell = Callable[[int, int], None]
"""Told how many of how many rounds are done, outside what is timed; may raise to stop."""

Row = dict[str, int | float | None]
"""One measured round by column; a time ends in `_s`, None is not known."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One result beside the rounds: its name and value as data, and a sentence for the eye."""

    name: str
    value: object
    sentence: str


@dataclass(slots=True)
class Findings:
    """What an experiment has found so far.

    Attributes:
        rounds: the measured rounds in order.
        facts: results beside them.
        wrong: a sentence for each value that is not what it has to be.
    """

    rounds: list[Row] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Experiment(Protocol):
    """A measurement by name."""

    @property
    def title(self) -> str:
        """How the first line describes it, `op = mul, rounds = 18, merge = copy`."""

    @property
    def settings(self) -> dict[str, object]:
        """What makes it reproducible: its `name`, and its options by their names."""

    @property
    def variant(self) -> str:
        """Which of its workload's experiments it is, as options say it, `--op mul`."""

    @property
    def unused(self) -> frozenset[str]:
        """The options of its workload, by name, that this one does not look at."""

    @property
    def selection(self) -> str:
        """Which rounds are measured, and what of them, in words."""

    @property
    def shrink_hint(self) -> str:
        """What to do where it needs too much memory, `use fewer --rounds`."""

    def needed_bytes(self) -> int:
        """A lower bound of the memory that it needs."""

    def measure(self, findings: Findings, backend: Backend, clock: Clock, tell: Tell) -> None:
        """Carry it out on `backend`.

        Raises:
            CkptError: it cannot go on; `findings` have what is complete.
        """
