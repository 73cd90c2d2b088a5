"""A workload by its name, or a program of the user's own on ckpt's engine: what is meant where no
other subject is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ckptcli.errors import UsageError
from ckptcli.options.commands.plan import PlanOptions
from ckptcli.options.commands.saved import SavedOptions

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.subjects.base import Growing, PlanAnswer, Subject, SubjectOptions, Tell
    from ckptcli.cli.workload_profile import WorkloadProfile
    from ckptcli.measure.check import CheckedProgram
    from ckptcli.measure.saved_list import SavedProgram
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.effects import Kind
    from ckptcli.peers.base import Engine

JAX = "jax"
"""The engine in which a plan has a counterpart."""

SIZES = ("n", "layers", "batch", "steps", "chi")
"""What `ckpt fits` can make larger, if the workload looks at it."""


class WorkloadSubject:
    """A workload under strategies, and beside ckpt's own engine in others; see `Subject`."""

    def __init__(self, options: SubjectOptions, line: Line) -> None:
        self._line = line
        self.engine_names: Sequence[str] = options.peers.engine_names
        is_planned = isinstance(options, PlanOptions) and set(self.engine_names) <= {JAX}
        if self.engine_names and isinstance(options, SavedOptions | PlanOptions) and not is_planned:
            raise UsageError(
                f"--engine {self.engine_names[0]} needs --module here",
                "`ckpt run --engine` compares the silu network",
            )

    @staticmethod
    def named_by(options: SubjectOptions) -> str | None:
        del options
        return None

    @staticmethod
    def kind(options: SubjectOptions) -> Kind:
        from ckptcli.cli.programs import kind_of_workload

        return kind_of_workload(options.program.workload_text, options.peers.engine_names)

    @property
    def sums(self) -> Sequence[str]:
        from ckptcli.measure.saved import SUMS

        return SUMS

    def profile(self, options: RunOptions) -> WorkloadProfile:
        from ckptcli.cli.workload_profile import WorkloadProfile

        return WorkloadProfile(options, self._line)

    def checks(self, options: CheckOptions, engines: Sequence[Engine]) -> Iterator[CheckedProgram]:
        from ckptcli.cli.workload_checks import checked_workload

        return checked_workload(options, self._line, engines)

    def saved(self, options: SavedOptions, engines: Sequence[Engine]) -> Iterator[SavedProgram]:
        from ckptcli.cli.workload_saved import saved_by_workload

        del engines
        return saved_by_workload(options, self._line)

    def plan(self, options: PlanOptions, engines: Sequence[Engine], tell: Tell) -> PlanAnswer:
        from ckptcli.cli.program_plans import planned_workload

        del tell
        return planned_workload(options, self._line, engines)

    def growing(self, options: FitsOptions) -> Growing:
        from ckptcli.cli.subjects.base import Growing

        over = options.size.over or "n"
        if over not in SIZES:
            raise UsageError(
                f"--over {over} is nothing that a workload has",
                f"use one of {', '.join(SIZES)}, or --module with a keyword of its MAKE",
            )
        _check_taken(over, self.kind(options))
        title = options.program.workload_text
        return Growing(title, over, False, lambda values, size: {**values, over: size})


def _check_taken(name: str, kind: Kind) -> None:
    """Raises:
    UsageError: the workload does not look at it.
    """
    from ckptcli.options.effects import takes
    from ckptcli.options.listing import options_of
    from ckptcli.options.workload import WorkloadOptions

    (option,) = (option for option in options_of(WorkloadOptions) if option.name == name)
    if not takes(kind, option):
        raise UsageError(
            f"--over {name} has no effect on {kind.title}", "name what its size depends on"
        )


SUBJECT: type[Subject] = WorkloadSubject
