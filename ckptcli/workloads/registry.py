"""The workloads by name. A workload registers itself; its file is all that it takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

import ckptcli.workloads as package
from ckptcli.errors import UnknownNameError
from ckptcli.workloads.base import Workload
from ckptcli.workloads.options import WorkloadOptions, option_texts

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


def options_without_effect(text: str) -> list[str]:
    """The options that the workload in `text` does not look at; call after `open_workloads`."""
    used = _USES[text.partition(":")[0]]
    return [name for name in option_texts() if name not in used]


def open_workloads(text: str, options: WorkloadOptions) -> list[Workload]:
    """The workloads that `NAME` or `NAME:ARGUMENT` stands for, at least one.

    Raises:
        UnknownNameError: no workload has this name.
        UsageError: the argument is wrong.
    """
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    name, _, argument = text.partition(":")
    if name not in _OPENERS:
        raise UnknownNameError("workload", name, _OPENERS)
    return _OPENERS[name](argument, options)
