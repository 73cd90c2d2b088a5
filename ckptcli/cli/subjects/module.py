"""A PyTorch module of the user's own: `--module FILE.py:MAKE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ckptcli.cli.streams import warn
from ckptcli.cli.subjects.base import Growing, PlanAnswer, Profile, Tell
from ckptcli.errors import UsageError
from ckptcli.options.effects import Kind
from ckptcli.options.subjects import MODULE

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
    from ckptcli.options.program import BlockOptions, InputOptions, PeerOptions
    from ckptcli.options.workload import WorkloadOptions
    from ckptcli.peers.base import Engine
    from ckptcli.peers.module_request import ModuleRequest

ENGINE = "torch"
KIND = Kind(MODULE, "a module", frozenset({"dtype"}))


class ModuleSource(Protocol):
    """The options that say which module."""

    @property
    def peers(self) -> PeerOptions: ...

    @property
    def blocks(self) -> BlockOptions: ...

    @property
    def inputs(self) -> InputOptions: ...

    @property
    def workload(self) -> WorkloadOptions: ...


def module_request(options: ModuleSource) -> ModuleRequest:
    """The module that options ask for.

    Raises:
        UsageError: another engine, or an input or a keyword that is none.
    """
    from ckptcli.options.keywords import keywords_in
    from ckptcli.peers.module_input import parsed_input
    from ckptcli.peers.module_request import ModuleRequest

    text = options.peers.module_text or ""
    if set(options.peers.engine_names) - {ENGINE}:
        raise UsageError(
            f"--module {text} needs --engine {ENGINE} alone",
            f"leave out --engine, or use {ENGINE}",
        )
    inputs = tuple(map(parsed_input, options.inputs.input_texts))
    return ModuleRequest(
        text,
        options.blocks.blocks_text,
        inputs,
        options.workload.dtype,
        keywords=keywords_in(options.inputs.keyword_texts),
    )


class ModuleSubject:
    """A module under strategies, in PyTorch; see `Subject`."""

    engine_names: Sequence[str] = (ENGINE,)

    def __init__(self, options: SubjectOptions, line: Line) -> None:
        del line
        self.request = module_request(options)

    @staticmethod
    def named_by(options: ModuleSource) -> str | None:
        text = options.peers.module_text
        return None if text is None else f"--module {text}"

    @staticmethod
    def kind(options: SubjectOptions) -> Kind:
        """Keywords are held against the text of the file: nothing of it is run for this."""
        from ckptcli.checkpoint.user_code import is_user_code
        from ckptcli.checkpoint.user_keywords import check_keywords, keywords_written
        from ckptcli.options.keywords import keyword_lists

        text, keywords = options.peers.module_text or "", options.inputs.keyword_texts
        if keywords and is_user_code(text):
            check_keywords(text, keyword_lists(keywords), keywords_written(text))
        return KIND

    @property
    def sums(self) -> Sequence[str]:
        from ckptcli.measure.module_saved import SUMS

        return SUMS

    def profile(self, options: RunOptions) -> ModuleProfile:
        return ModuleProfile(self, options)

    def checks(self, options: CheckOptions, engines: Sequence[Engine]) -> Iterator[CheckedProgram]:
        from ckptcli.measure.check import CheckedProgram
        from ckptcli.profiling.module_check import CheckedModule

        checked = CheckedModule(self.request, options.workload.seed, engines[0])
        warn(checked.notes, options.notes.quiet)
        strategies = checked.strategies(options.strategies.strategy_texts)
        yield CheckedProgram(checked.title, list(checked.checks(strategies)), MODULE)

    def saved(self, options: SavedOptions, engines: Sequence[Engine]) -> Iterator[SavedProgram]:
        from ckptcli.profiling.module_saved import saved_under_strategies

        names, seed = options.strategies.strategy_texts, options.workload.seed
        is_fake = options.shapes.is_fake
        yield saved_under_strategies(self.request, seed, engines[0], names, is_fake)

    def plan(self, options: PlanOptions, engines: Sequence[Engine], tell: Tell) -> PlanAnswer:
        from ckptcli.cli.module_plans import planned_module

        return planned_module(self.request, options, engines[0], tell)

    def growing(self, options: FitsOptions) -> Growing:
        over = _keyword(self.request.text, options.size.over, options.inputs.keyword_texts)

        def at(values: Mapping[str, Any], size: int) -> dict[str, Any]:
            return {**values, "keyword_texts": (*values["keyword_texts"], f"{over}={size}")}

        return Growing(self.request.text, over, True, at)


def _keyword(text: str, over: str | None, given: Sequence[str]) -> str:
    """The keyword of `MAKE` that --over names.

    Raises:
        UsageError: none, or one that --set gives a value.
    """
    from ckptcli.checkpoint.user_keywords import keywords_written
    from ckptcli.options.keywords import keywords_in

    if over is None:
        taken = keywords_written(text)
        known = f", of {', '.join(taken)}" if taken else ""
        raise UsageError(
            f"--module {text} does not say what is to be made larger",
            f"give --over KEY, a keyword of MAKE{known}",
        )
    if over in keywords_in(given):
        raise UsageError(f"--set {over} and --over {over} are about one keyword", "leave out --set")
    return over


class ModuleProfile(Profile):
    """What a run measures of a module; see `Profile`."""

    modules: ClassVar[Sequence[str]] = ("ckptcli.profiling.module_profile",)
    has_pass: ClassVar[bool] = True

    def __init__(self, subject: ModuleSubject, options: RunOptions) -> None:
        from ckptcli.peers.module_strategies import module_strategies
        from ckptcli.profiling.device_memory import limit_of

        self._limit_bytes = limit_of(options.limit.device_memory)
        accumulate = options.training.accumulate
        self._request = replace(subject.request, accumulate=accumulate)
        self._is_fake = options.shapes.is_fake
        self._strategies = module_strategies(options.strategies.strategy_texts)
        self.row_names = [strategy.name for strategy in self._strategies]
        self.has_reference = len(self._strategies) > 1
        self._engine: Engine

    def open(self, engines: Sequence[Engine]) -> list[str]:
        (self._engine,) = engines
        return []

    def measure(self, measurement: Measurement) -> RunRecord:
        from ckptcli.profiling.fake_profile import profile_shapes
        from ckptcli.profiling.module_profile import profile_module

        if self._is_fake:
            return profile_shapes(
                self._request,
                self._strategies,
                self._engine,
                measurement.plan,
                measurement.tell,
                config=measurement.config,
                command=measurement.command,
                limit_bytes=self._limit_bytes,
            )
        return profile_module(
            self._request,
            self._strategies,
            self._engine,
            measurement.plan,
            measurement.threshold,
            measurement.tell,
            config=measurement.config,
            command=measurement.command,
            finished=measurement.finished,
            limit_bytes=self._limit_bytes,
        )


SUBJECT: type[Subject] = ModuleSubject
