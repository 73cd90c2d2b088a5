"""The workloads by name. A workload registers itself; the file of its name is all that it takes.

Invariant: to open one loads its file and no other's.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import ckptcli.workloads as package
from ckptcli.checkpoint.user_code import SUFFIX, is_user_code
from ckptcli.errors import UnknownNameError, UsageError, nearest_name
from ckptcli.options.listing import options_of
from ckptcli.options.points import Point, points
from ckptcli.options.workload import WorkloadOptions

if TYPE_CHECKING:
    from ckptcli.workloads.base import Workload
    from ckptcli.workloads.experiment import Experiment

PROGRAM = "program"
"""The workload that a user's own file is."""

Opener = Callable[[str, WorkloadOptions], "list[Workload]"]
"""From what follows `NAME:` and options of one value each to the workload, or those of a file."""

ExperimentOpener = Callable[[str, WorkloadOptions], "Experiment"]

_OPENERS: dict[str, Opener] = {}
_EXPERIMENTS: dict[str, ExperimentOpener] = {}
_USES: dict[str, tuple[str, ...]] = {}
_FORMS: dict[str, str] = {}

OpenerFunction = TypeVar("OpenerFunction", bound=Opener)
ExperimentFunction = TypeVar("ExperimentFunction", bound=ExperimentOpener)


def workload(
    name: str, *uses: str, argument: str = ""
) -> Callable[[OpenerFunction], OpenerFunction]:
    """Decorator: makes an opener known under `name`; `uses` are the options that concern it, and
    `argument` what has to follow the name, `FILE`.
    """

    def enter(opener: OpenerFunction) -> OpenerFunction:
        _FORMS[name] = f"{name}:{argument}" if argument else name
        _OPENERS[name] = opener
        _USES[name] = uses
        return opener

    return enter


def experiment(name: str, *uses: str) -> Callable[[ExperimentFunction], ExperimentFunction]:
    """Decorator: the same for an experiment."""

    def enter(opener: ExperimentFunction) -> ExperimentFunction:
        _EXPERIMENTS[name] = opener
        _USES[name] = uses
        return opener

    return enter


def options_without_effect(text: str) -> tuple[str, list[str]]:
    """The name of the workload in `text`, and the options that it does not look at.

    Raises:
        UnknownNameError, UsageError: no workload has this name.
    """
    name, _ = _name_and_argument(text)
    if name not in _USES:
        raise _unknown(text, name)
    used = {*_USES[name], "seed"}  # which draws the order of rounds and directions too
    return name, [o.name for o in options_of(WorkloadOptions) if o.name not in used]


def open_workloads(text: str, options: WorkloadOptions) -> list[Workload]:
    """The workloads that `NAME`, `NAME:ARGUMENT` or `FILE.py:MAKE` stands for, at least one: those
    of each point of the options.

    Raises:
        UnknownNameError: no workload has this name.
        UsageError: the argument or an option is wrong, or it is an experiment.
    """
    name, argument = _name_and_argument(text)
    if name in _EXPERIMENTS:
        raise UsageError(
            f"workload `{name}` is an experiment without strategies, which this command does not "
            "take",
            f"use `ckpt run --workload {name}`",
        )
    if name not in _OPENERS:
        raise _unknown(text, name)
    return [
        opened
        for point in points(options, _USES[name])
        for opened in _OPENERS[name](argument, point.options)
    ]


def points_of(text: str, options: WorkloadOptions) -> list[Point]:
    """The points that the options stand for in the workload of `text`; call after it was opened."""
    name, _ = _name_and_argument(text)
    return points(options, _USES[name])


def open_experiment(text: str, options: WorkloadOptions) -> Experiment | None:
    """The experiment that `NAME` stands for; None where it names another workload, or none.

    Raises:
        UsageError: the argument is wrong.
    """
    name, argument = _name_and_argument(text)
    return _EXPERIMENTS[name](argument, options) if name in _EXPERIMENTS else None


def is_experiment(text: str) -> bool:
    """Whether the name stands for an experiment, which has no strategies."""
    return _name_and_argument(text)[0] in _EXPERIMENTS


def workload_names() -> list[str]:
    """What `--workload` takes, experiments too, in order."""
    _load_all()
    named = {*_OPENERS, *_EXPERIMENTS} - {PROGRAM}
    return sorted([*(_FORMS.get(name, name) for name in named), f"FILE{SUFFIX}:MAKE"])


def _unknown(text: str, name: str) -> UsageError:
    """No workload has this name; a file of the user's may, without its suffix."""
    file, colon, function = text.partition(":")
    if colon and os.path.isfile(file + SUFFIX):
        return UsageError(
            f"unknown workload `{name}`", f"did you mean `{file}{SUFFIX}:{function}`?"
        )
    forms = {form.partition(":")[0]: form for form in workload_names()}
    error = UnknownNameError("workload", name, forms.values())
    nearest = nearest_name(name, forms)  # by the name alone, without what follows it
    if nearest is not None:
        error.hint = f"did you mean `{forms[nearest]}`?"
    return error


def _load_all() -> None:
    """Import every workload, which registers itself."""
    for module in _files():
        importlib.import_module(f"{package.__name__}.{module}")


@cache
def _files() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(package.__path__))


def _name_and_argument(text: str) -> tuple[str, str]:
    """The name, whose file is loaded if there is one, and what follows it.

    `FILE.py:MAKE`, or a file without a function, is the argument of `program`.
    """
    name, _, argument = text.partition(":")
    if name in _files():
        importlib.import_module(f"{package.__name__}.{name}")
    if name in _USES:
        return name, argument
    if is_user_code(text) or text.endswith(SUFFIX):
        importlib.import_module(f"{package.__name__}.{PROGRAM}")
        return PROGRAM, text
    return name, argument
