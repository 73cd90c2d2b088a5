"""A JAX function of the user's own as a subject of `ckpt run`: `--function FILE.py:MAKE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ckptcli.cli.functions import SUBJECT as FUNCTION_SUBJECT, checked_function
from ckptcli.options.effects import takes

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.subjects.base import Measurement
    from ckptcli.measure.record import RunRecord
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.option import Option
    from ckptcli.peers.base import Engine


class FunctionSubject:
    """A function under strategies, in JAX; see `RunSubject`."""

    is_special: ClassVar[bool] = True
    modules: ClassVar[Sequence[str]] = ("ckptcli.profiling.own_program",)
    has_pass: ClassVar[bool] = False

    def __init__(self, options: RunOptions, line: Line) -> None:
        from ckptcli.peers.function_strategies import function_strategies

        self._text = options.function.function_text or ""
        self.engine_names, self._notes = checked_function(
            self._text, options.peers.engine_names, options.peers.module_text, line
        )
        self._strategies = function_strategies(options.strategies.strategy_texts)
        names = [strategy.name for strategy in self._strategies]
        one = len(self.engine_names) == 1
        self.row_names = [
            name if one else f"{engine} {name}" for engine in self.engine_names for name in names
        ]
        self.has_reference = len(self.row_names) > 1
        self._engines: Sequence[Engine] = ()

    @staticmethod
    def is_meant(options: RunOptions) -> bool:
        return options.function.function_text is not None

    def instead(self, stops: Stops) -> int | None:
        del stops
        return None

    def open(self, engines: Sequence[Engine]) -> list[str]:
        self._engines = engines
        return self._notes

    def takes(self, option: Option) -> bool:
        return takes(FUNCTION_SUBJECT, option)

    def before(self, stdout_is_data: bool) -> list[str]:
        del stdout_is_data
        return []

    def measure(self, measurement: Measurement) -> RunRecord:
        from ckptcli.profiling.function_profile import profile_function

        return profile_function(
            self._text,
            self._strategies,
            self._engines,
            measurement.plan,
            measurement.threshold,
            measurement.tell,
            config=measurement.config,
            command=measurement.command,
            finished=measurement.finished,
        )


SUBJECT = FunctionSubject
