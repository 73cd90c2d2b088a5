"""The points that a command line stands for: lists, conditions and a grid file made into tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckptcli.cli.click_options import type_of
from ckptcli.cli.settings import checked_defaults
from ckptcli.config import named_config
from ckptcli.errors import ConfigError, UsageError
from ckptcli.measure.point import shown_name
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.commands.sweep import SweepOptions
from ckptcli.options.effects import Kind, takes
from ckptcli.options.keywords import Keyword, keyword_lists, keyword_texts, shown_keyword
from ckptcli.options.listing import built, options_of, values_of
from ckptcli.options.option import Option
from ckptcli.options.origins import ENVIRONMENT, FLAG, GRID
from ckptcli.options.points import combined, lists_of
from ckptcli.options.refusals import settled
from ckptcli.options.subjects import EXPERIMENT
from ckptcli.options.words import child_words
from ckptcli.sweep.tasks import Task, files_in, key_of
from ckptcli.sweep.where import Where

if TYPE_CHECKING:
    from ckptcli.cli.line import Line

MOST_TASKS = 10_000
LISTS = ("integers", "numbers", "words")
KEYWORDS = "keyword_texts"
_FILES = ("workload_text", "module_text", "function_text")
_NOT_OF_A_POINT = {"as_json": True, "quiet": False}


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What a sweep is to measure.

    Attributes:
        title: what is swept over, in words.
        axes: the options, and the keywords of `MAKE`, that have several values, by their names.
        tasks: a task a point, each of another key.
    """

    title: str
    axes: Sequence[str]
    tasks: Sequence[Task]


@dataclass(frozen=True, slots=True)
class _Place:
    """One point before it is a task: its value of each list, of options and of keywords of `MAKE`,
    which may be called alike.
    """

    settings: Mapping[str, Any]
    keywords: Mapping[str, Keyword]

    def value_of(self, axis: str) -> Any:
        """As a point has it: a number or a text."""
        value = self.keywords.get(axis, self.settings.get(axis))
        return shown_keyword(value) if isinstance(value, bool) else value


def with_grid(options: SweepOptions, line: Line) -> SweepOptions:
    """The options, with those of `--grid` where neither the command line nor a variable has them.

    Raises:
        ConfigError: the file is absent or wrong.
    """
    path = options.axes.grid_path
    if path is None:
        return options
    known = {option.key: option for option in options_of(SweepOptions)}
    found = named_config(Path(path))
    table = found.document.get("ckpt")
    if not isinstance(table, dict):
        raise ConfigError(f"grid file `{path}` has no table [ckpt]", "write the options in one")
    texts = {name: _as_text(known.get(name.replace("_", "-")), v) for name, v in table.items()}
    read = checked_defaults(replace(found, document={"ckpt": texts}), known)
    for unknown in read.unknown:
        raise ConfigError(f"grid file `{path}`: {unknown}")
    nearer = {name for name, origin in line.origins.items() if origin in (FLAG, ENVIRONMENT)}
    values = {
        known[key].name: _converted(known[key], value)
        for key, value in read.values.items()
        if known[key].name not in nearer
    }
    merged = {**values_of(options), **values}
    origins = {**line.origins, **dict.fromkeys(values, GRID)}
    return built(SweepOptions, {**merged, **settled(options_of(SweepOptions), merged, origins)})


def _as_text(option: Option | None, value: Any) -> Any:
    """A list of TOML as the text of one, where the option takes that."""
    if option is not None and option.kind in LISTS and isinstance(value, list):
        return ",".join(map(str, value))
    return value


def _converted(option: Option, value: Any) -> Any:
    convert = type_of(option).convert
    if isinstance(value, list):
        return tuple(convert(item, None, None) for item in value)
    return value if option.kind == "boolean" else convert(value, None, None)


def sweep_plan(options: SweepOptions) -> SweepPlan:
    """The tasks of a sweep, at least one.

    Raises:
        UsageError: lists that what is swept does not take, no point that `--where` leaves, or too
            many.
    """
    kind = _kind(options)
    known, values = options_of(SweepOptions), values_of(options)
    lists = lists_of([option for option in known if option.kind in LISTS], values)
    keywords = keyword_lists(options.inputs.keyword_texts)
    several = [name for name, found in (*lists.items(), *keywords.items()) if len(found) > 1]
    swept = {KEYWORDS if name in keywords else name for name in several}
    _check_taken(kind, [option for option in known if option.name in swept])
    _check_apart(keywords, lists)
    points = [
        _Place(
            {name: value for name, value in point.items() if name not in keywords},
            {name: value for name, value in point.items() if name in keywords},
        )
        for point in combined({**lists, **keywords}, MOST_TASKS, options.axes.zipped)
    ]
    kept = _kept(points, options.axes.where_text, known, values)
    tasks = [_task(options, point, several) for point in kept]
    return SweepPlan(_title(options, several), several, list({t.key: t for t in tasks}.values()))


def _kept(
    points: Sequence[_Place],
    where_text: str | None,
    options: Sequence[Option],
    values: Mapping[str, Any],
) -> Sequence[_Place]:
    """The points for which the condition holds, at least one."""
    if where_text is None:
        return points
    where = Where(where_text)
    kept = [
        point
        for point in points
        if where.holds({**_places(options, {**values, **point.settings}), **point.keywords})
    ]
    if not kept:
        raise UsageError(f"--where `{where.text}` leaves no point", "ask for less")
    return kept


def _check_apart(keywords: Mapping[str, object], lists: Mapping[str, object]) -> None:
    """Raises:
    UsageError: a keyword is called as an option that was given.
    """
    for name in keywords:
        if name in lists:
            raise UsageError(
                f"--{shown_name(name)} and --set {name} would be two axes of one name",
                "leave out one",
            )


def _kind(options: SweepOptions) -> Kind:
    """What is swept.

    Raises:
        UsageError: an experiment, which has no strategies.
        UnknownNameError: no workload has this name.
    """
    from ckptcli.cli.subjects import kind_of

    kind, text = kind_of(options), options.program.workload_text
    if kind.name == EXPERIMENT:
        raise UsageError(
            f"workload `{text}` is an experiment without strategies, which is not swept over",
            f"use `ckpt run --workload {text}`",
        )
    return kind


def _check_taken(kind: Kind, lists: Sequence[Option]) -> None:
    for option in lists:
        if not takes(kind, option):
            raise UsageError(
                f"{option.flag} has no effect on {kind.title}, and so is nothing to sweep over",
                "leave it out",
            )


def _places(options: Sequence[Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """What a condition may ask for: sizes and words; one that is not given is what its help says,
    as `batch` is `n`.
    """
    names = {option.name: option for option in options if option.kind in LISTS}
    found = {
        name: values.get(option.default_text) if values[name] is None else values[name]
        for name, option in names.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _task(options: SweepOptions, point: _Place, several: Sequence[str]) -> Task:
    taken = {option.name for option in options_of(RunOptions)}
    keywords = keyword_texts(point.keywords)
    values = {**values_of(options), **point.settings, KEYWORDS: keywords, **_NOT_OF_A_POINT}
    run = built(RunOptions, {name: value for name, value in values.items() if name in taken})
    words = child_words(options_of(RunOptions), values_of(run))
    if run.rounds.processes > 1:
        words += ["--processes", str(run.rounds.processes)]
    key = key_of(words, files_in([values[name] for name in _FILES]))
    if run.rounds.timeout_s is not None:
        words += ["--timeout", str(run.rounds.timeout_s)]
    return Task(key, {axis: point.value_of(axis) for axis in several}, words, os.getcwd())


def _title(options: SweepOptions, several: Sequence[str]) -> str:
    """What is swept, and over what, as it was given."""
    values = values_of(options)
    what = next(text for name in reversed(_FILES) if (text := values[name]) is not None)
    given = {**values, **dict(text.split("=", 1) for text in values[KEYWORDS])}
    sizes = [f"{name} = {given[name]}" for name in several]
    return ", ".join([what, *sizes])
