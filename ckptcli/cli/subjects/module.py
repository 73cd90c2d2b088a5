"""A PyTorch module of the user's own as a subject of `ckpt run`: `--module FILE.py:MAKE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ckptcli.cli.modules import ENGINE, SUBJECT as MODULE_SUBJECT, checked_module
from ckptcli.options.effects import takes

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.subjects.base import Measurement
    from ckptcli.measure.record import RunRecord
    from ckptcli.options.commands.run import RunOptions
    from ckptcli.options.option import Option
    from ckptcli.peers.base import Engine


class ModuleSubject:
    """A module under strategies, in PyTorch; see `RunSubject`."""

    is_special: ClassVar[bool] = True
    modules: ClassVar[Sequence[str]] = ("ckptcli.profiling.module_profile",)
    has_pass: ClassVar[bool] = False

    def __init__(self, options: RunOptions, line: Line) -> None:
        from ckptcli.peers.module_strategies import module_strategies

        self._text = options.peers.module_text or ""
        self._blocks = options.blocks.blocks_text
        self._notes = checked_module(options.peers, line)
        self._strategies = module_strategies(options.strategies.strategy_texts)
        self.engine_names = (ENGINE,)
        self.row_names = [strategy.name for strategy in self._strategies]
        self.has_reference = len(self._strategies) > 1
        self._engine: Engine

    @staticmethod
    def is_meant(options: RunOptions) -> bool:
        return options.peers.module_text is not None

    def instead(self, stops: Stops) -> int | None:
        del stops
        return None

    def open(self, engines: Sequence[Engine]) -> list[str]:
        (self._engine,) = engines
        return self._notes

    def takes(self, option: Option) -> bool:
        return takes(MODULE_SUBJECT, option)

    def before(self, stdout_is_data: bool) -> list[str]:
        del stdout_is_data
        return []

    def measure(self, measurement: Measurement) -> RunRecord:
        from ckptcli.profiling.module_profile import profile_module

        return profile_module(
            self._text,
            self._strategies,
            self._engine,
            measurement.plan,
            measurement.threshold,
            measurement.tell,
            wanted=self._blocks,
            config=measurement.config,
            command=measurement.command,
            finished=measurement.finished,
        )


SUBJECT = ModuleSubject
