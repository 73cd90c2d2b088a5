"""What a command line is about: a workload, a PyTorch module, a JAX function. One file each.

A subject has a door for each command: what `ckpt run` measures of it, what `ckpt check` proves,
what `ckpt saved` lists, what `ckpt plan` plans and what `ckpt fits` makes larger. How that is
exported, printed, judged and turned into an exit code is none of its concern.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.measure.check import CheckedProgram
    from ckptcli.measure.record import RunRecord
    from ckptcli.measure.rounds import Plan
    from ckptcli.measure.saved_list import SavedProgram
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.commands.saved import SavedOptions
    from ckptcli.options.commands.sweep import SweepOptions
    from ckptcli.options.effects import Kind
    from ckptcli.peers.base import Engine
    from ckptcli.report.screen import Screen

    SubjectOptions: TypeAlias = (
        RunOptions | CheckOptions | SavedOptions | SweepOptions | PlanOptions | FitsOptions
    )

Tell: TypeAlias = Callable[[str, int, int], None]
"""Gets a phase and how many of how many steps of it are done."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """How a subject is measured, and who is told meanwhile.

    Attributes:
        plan: how many rounds.
        threshold: a time ratio within this of 1 is `same`.
        config, command: the settings and the command line to keep in the record.
        tell: gets a phase and how many of how many steps are done; never during a timed sample.
        finished: gets the record so far whenever there is more of it, marked partial.
    """

    plan: Plan
    threshold: float
    config: dict[str, object]
    command: Sequence[str]
    tell: Tell
    finished: Callable[[RunRecord], None]


class Subject(Protocol):
    """What the command line is about, from its options, whatever the command.

    Attributes:
        engine_names: the engines to open for it.
    """

    engine_names: Sequence[str]

    def __init__(self, options: SubjectOptions, line: Line) -> None:
        """Raises:
        UsageError: options that do not go together.
        """

    @staticmethod
    def named_by(options: SubjectOptions) -> str | None:
        """The words that mean such a subject; None where there are none, as for the workload."""

    @staticmethod
    def kind(options: SubjectOptions) -> Kind:
        """What options mean for it: what others do is told, and is in no record.

        Raises:
            UnknownNameError, UsageError: it names what there is not.
        """

    @property
    def sums(self) -> Sequence[str]:
        """By what `ckpt saved` can take sums of what it lists."""

    def profile(self, options: RunOptions) -> Profile:
        """What `ckpt run` measures of it.

        Raises:
            CkptError: options that do not go together.
        """

    def checks(self, options: CheckOptions, engines: Sequence[Engine]) -> Iterator[CheckedProgram]:
        """What `ckpt check` finds out of it, a program after another. The threads are set.

        Raises:
            CkptError: it cannot be opened, or fails.
        """

    def saved(self, options: SavedOptions, engines: Sequence[Engine]) -> Iterator[SavedProgram]:
        """What `ckpt saved` lists of it, a program after another. The threads are set.

        Raises:
            CkptError: it cannot be opened, or fails.
        """

    def plan(self, options: PlanOptions, engines: Sequence[Engine], tell: Tell) -> PlanAnswer:
        """What `ckpt plan` answers for it. The threads are set.

        Raises:
            CkptError: there is nothing to plan, it cannot be opened, or fails.
        """

    def growing(self, options: FitsOptions) -> Growing:
        """What `ckpt fits` makes larger of it.

        Raises:
            UsageError: it has nothing by the name of --over, or nothing at all.
        """


@dataclass(frozen=True, slots=True)
class Growing:
    """What of a subject is made larger, and how its points are asked for.

    Attributes:
        title: what a reader calls the subject.
        over: the name of what is made larger.
        has_shapes: whether shapes alone tell its memory: what may not fit is not run then.
        at: the options of a point by their names, from those of all and a size.
    """

    title: str
    over: str
    has_shapes: bool
    at: Callable[[Mapping[str, Any], int], dict[str, Any]]


class PlanAnswer(ABC):
    """The answer of a `ckpt plan`, as data.

    Attributes:
        notes: what a reader has to know, in sentences.
    """

    notes: Sequence[str]

    @property
    @abstractmethod
    def feasible(self) -> bool:
        """Whether a plan within the limit was found; without a limit, always."""

    @property
    def is_wrong(self) -> bool:
        """Whether the plan was run, and is above its limit or has other gradients."""
        return False

    @abstractmethod
    def data(self) -> str:
        """The object `ckpt.plan/1`, as text."""

    def exported(self) -> str:
        """What `--export` writes."""
        return self.data()

    def page(self) -> str:
        """The same as a page.

        Raises:
            UsageError: it has none.
        """
        raise UsageError("--export: only the plan of a program has a page", "use a .json")

    @abstractmethod
    def render(self, screen: Screen) -> str:
        """The whole screen."""


class Profile(ABC):
    """A subject in one `ckpt run`: opened after the threads are set and the libraries are there.

    Attributes:
        modules: what has to be imported before signals count: no import survives an interrupt.
        has_pass: whether a row's pass will be known op by op.
        row_names: how conditions may call the rows.
        has_reference: whether changes can be asked for.
    """

    modules: ClassVar[Sequence[str]] = ()
    has_pass: ClassVar[bool] = False
    row_names: Sequence[str]
    has_reference: bool

    def instead(self, stops: Stops) -> int | None:
        """Carry out what the options stand for if that is no profile; the exit code, or None."""
        del stops
        return None

    @abstractmethod
    def open(self, engines: Sequence[Engine]) -> list[str]:
        """Open what is measured, and refuse what cannot be; warnings.

        Raises:
            CkptError: it cannot be opened.
        """

    def before(self, stdout_is_data: bool) -> list[str]:
        """What comes before the first pass; warnings."""
        del stdout_is_data
        return []

    @abstractmethod
    def measure(self, measurement: Measurement) -> RunRecord:
        """The record.

        Raises:
            PassOutOfMemory: nothing fits.
        """
