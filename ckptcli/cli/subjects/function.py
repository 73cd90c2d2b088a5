"""A JAX function of the user's own: `--function FILE.py:MAKE`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from ckptcli.cli.streams import warn
from ckptcli.cli.subjects.base import Growing, PlanAnswer, Profile, Tell
from ckptcli.errors import UsageError
from ckptcli.options.effects import Kind
from ckptcli.options.subjects import FUNCTION

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.subjects.base import Measurement, Subject, SubjectOptions
    from ckptcli.measure.check import CheckedProgram
    from ckptcli.measure.record import RunRecord
    from ckptcli.measure.saved_list import SavedProgram
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.options.commands.plan import PlanOptions
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.commands.saved import SavedOptions
    from ckptcli.peers.base import Engine

ENGINE = "jax"
ENGINES = (ENGINE, "jax-eager")
KIND = Kind(FUNCTION, "a function")


class FunctionSubject:
    """A function under strategies, in JAX; see `Subject`."""

    def __init__(self, options: SubjectOptions, line: Line) -> None:
        del line
        self.text = options.function.function_text or ""
        self.engine_names = _engines(self.text, options.peers.engine_names)

    @staticmethod
    def named_by(options: SubjectOptions) -> str | None:
        text = options.function.function_text
        return None if text is None else f"--function {text}"

    @staticmethod
    def kind(options: SubjectOptions) -> Kind:
        del options
        return KIND

    @property
    def sums(self) -> Sequence[str]:
        from ckptcli.measure.function_saved import SUMS

        return SUMS

    def profile(self, options: RunOptions) -> FunctionProfile:
        return FunctionProfile(self, options)

    def checks(self, options: CheckOptions, engines: Sequence[Engine]) -> Iterator[CheckedProgram]:
        from ckptcli.measure.check import CheckedProgram
        from ckptcli.peers.function_strategies import parse_function_strategy
        from ckptcli.profiling.function_check import CheckedFunction

        names = dict.fromkeys(options.strategies.strategy_texts)
        strategies = [parse_function_strategy(name) for name in names]
        checked = CheckedFunction(self.text, options.workload.seed)
        warn(checked.notes, options.notes.quiet)
        checks = list(checked.checks(strategies or checked.default()))
        yield CheckedProgram(checked.title, checks, FUNCTION)

    def saved(self, options: SavedOptions, engines: Sequence[Engine]) -> Iterator[SavedProgram]:
        from ckptcli.peers.function_strategies import parse_function_strategy
        from ckptcli.peers.jax_function_saved import saved_by_function

        del engines
        names = dict.fromkeys(options.strategies.strategy_texts)
        strategies = [parse_function_strategy(name) for name in names]
        yield saved_by_function(self.text, strategies)

    def plan(self, options: PlanOptions, engines: Sequence[Engine], tell: Tell) -> PlanAnswer:
        from ckptcli.cli.function_plans import planned_function

        if self.engine_names != (ENGINE,):
            raise UsageError(
                f"a plan for --function {self.text} is for what XLA compiles",
                f"leave out --engine, or use {ENGINE}",
            )
        return planned_function(self.text, options, engines[0], tell)

    def growing(self, options: FitsOptions) -> Growing:
        raise UsageError(
            f"--function {self.text} has nothing to be made larger: its MAKE takes no size",
            "use --module with a keyword of its MAKE, or a workload",
        )


def _engines(text: str, names: Sequence[str]) -> Sequence[str]:
    """JAX where none is named.

    Raises:
        UsageError: another engine than JAX's.
    """
    wrong = [name for name in names if name not in ENGINES]
    if wrong:
        raise UsageError(
            f"--function {text} is JAX's, and --engine {wrong[0]} is not",
            f"leave out --engine, or use {' or '.join(ENGINES)}",
        )
    return tuple(dict.fromkeys(names)) or (ENGINE,)


class FunctionProfile(Profile):
    """What a run measures of a function; see `Profile`."""

    modules: ClassVar[Sequence[str]] = ("ckptcli.profiling.own_program",)

    def __init__(self, subject: FunctionSubject, options: RunOptions) -> None:
        from ckptcli.peers.function_strategies import function_strategies

        self._subject = subject
        self._strategies = function_strategies(options.strategies.strategy_texts)
        names = [strategy.name for strategy in self._strategies]
        engines = subject.engine_names
        self.row_names = [
            name if len(engines) == 1 else f"{engine} {name}"
            for engine in engines
            for name in names
        ]
        self.has_reference = len(self.row_names) > 1
        self._engines: Sequence[Engine] = ()

    def open(self, engines: Sequence[Engine]) -> list[str]:
        self._engines = engines
        return []

    def measure(self, measurement: Measurement) -> RunRecord:
        from ckptcli.profiling.function_profile import profile_function

        return profile_function(
            self._subject.text,
            self._strategies,
            self._engines,
            measurement.plan,
            measurement.threshold,
            measurement.tell,
            config=measurement.config,
            command=measurement.command,
            finished=measurement.finished,
        )


SUBJECT: type[Subject] = FunctionSubject
