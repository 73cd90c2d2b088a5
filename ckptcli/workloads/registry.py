"""The workloads by name. A workload registers itself; its file is all that it takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

import ckptcli.workloads as package
from ckptcli.checkpoint.user_code import SUFFIX, is_user_code
from ckptcli.errors import UnknownNameError
from ckptcli.workloads.base import Workload
from ckptcli.workloads.options import WorkloadOptions, option_texts

PROGRAM = "program"
"""The workload that a user's own file is."""

Opener = Callable[[str, WorkloadOptions], list[Workload]]
"""From what follows `NAME:` and the options to the workload, or several from one file."""

_OPENERS: dict[str, Opener] = {}
_USES: dict[str, tuple[str, ...]] = {}

OpenerFunction = TypeVar("OpenerFunction", bound=Opener)


def workload(name: str, *uses: str) -> Callable[[OpenerFunction], OpenerFunction]:
    """Decorator: makes an opener known under `name`; `uses` are the options that concern it."""

    def enter(opener: OpenerFunction) -> OpenerFunction:
        _OPENERS[name] = opener
        _USES[name] = uses
        return opener

    return enter


def options_without_effect(text: str) -> tuple[str, list[str]]:
    """The name of the workload in `text`, and the options that it does not look at.

    Call after `open_workloads`.
    """
    name, _ = _name_and_argument(text)
    return name, [option for option in option_texts() if option not in _USES[name]]


def open_workloads(text: str, options: WorkloadOptions) -> list[Workload]:
    """The workloads that `NAME`, `NAME:ARGUMENT` or `FILE.py:FUNCTION` stands for, at least one.

    Raises:
        UnknownNameError: no workload has this name.
        UsageError: the argument is wrong.
    """
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    name, argument = _name_and_argument(text)
    if name not in _OPENERS:
        raise UnknownNameError("workload", name, _OPENERS)
    return _OPENERS[name](argument, options)


def _name_and_argument(text: str) -> tuple[str, str]:
    """`FILE.py:FUNCTION`, or a file without a function, is the argument of `program`."""
    name, _, argument = text.partition(":")
    if name not in _OPENERS and (is_user_code(text) or text.endswith(SUFFIX)):
        return PROGRAM, text
    return name, argument
