"""What `ckpt run` measures: a workload, a module. One file each; the rest of a run is the same.

A subject is opened after the threads are set and the libraries are there, and gives a record; how
it is exported, printed, judged by conditions and turned into an exit code is none of its concern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.measure.record import RunRecord
    from ckptcli.measure.rounds import Plan
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.option import Option
    from ckptcli.peers.base import Engine


@dataclass(frozen=True, slots=True)
class Measurement:
    """How a subject is measured, and who is told meanwhile.

    Attributes:
        plan: how many rounds.
        threshold: a time ratio within this of 1 is `same`.
        config, command: the settings and the command line to keep in the record.
        tell: gets a phase and how many of how many steps are done; never during a timed sample.
        finished: gets the record so far after each complete round, marked partial.
    """

    plan: Plan
    threshold: float
    config: dict[str, object]
    command: Sequence[str]
    tell: Callable[[str, int, int], None]
    finished: Callable[[RunRecord], None]


class RunSubject(Protocol):
    """What the command line is about.

    Attributes:
        is_special: whether it is meant rather than the workload, which is meant without it.
        modules: what has to be imported before signals count: no import survives an interrupt.
        has_pass: whether a row's pass will be known op by op.
        engine_names: the engines to open.
        row_names: how conditions may call the rows.
        has_reference: whether changes can be asked for.
    """

    is_special: ClassVar[bool]
    modules: ClassVar[Sequence[str]]
    has_pass: ClassVar[bool]
    engine_names: Sequence[str]
    row_names: Sequence[str]
    has_reference: bool

    def __init__(self, options: RunOptions, line: Line) -> None: ...

    @staticmethod
    def is_meant(options: RunOptions) -> bool:
        """Whether the options stand for such a subject."""

    def instead(self, stops: Stops) -> int | None:
        """Carry out what the options stand for if that is no profile; the exit code, or None."""

    def open(self, engines: Sequence[Engine]) -> list[str]:
        """Open what is measured, and refuse what cannot be; warnings.

        Raises:
            CkptError: it cannot be opened.
        """

    def takes(self, option: Option) -> bool:
        """Whether the option has an effect on what is measured; call after `open`."""

    def before(self, stdout_is_data: bool) -> list[str]:
        """What comes before the first pass; warnings."""

    def measure(self, measurement: Measurement) -> RunRecord:
        """The record.

        Raises:
            PassOutOfMemory: nothing fits.
        """
