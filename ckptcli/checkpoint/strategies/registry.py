"""The strategies by name. A strategy registers itself; its file is all that it takes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TypeVar

import ckptcli.checkpoint.strategies as package
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UnknownNameError, UsageError

_REGISTRY: dict[str, type[Strategy]] = {}

StrategyClass = TypeVar("StrategyClass", bound=type[Strategy])


def register(strategy: StrategyClass) -> StrategyClass:
    """Class decorator: makes the strategy known under its `name`."""
    _REGISTRY[strategy.name] = strategy
    return strategy


def registry() -> dict[str, type[Strategy]]:
    """Every strategy by name, `none` first, the others by name."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: (item[0] != "none", item[0])))


def parse_strategy(text: str) -> Strategy:
    """The strategy that `NAME` or `NAME:ARG[,KEY=VALUE]...` names.

    Raises:
        UnknownNameError: no strategy has this name.
        UsageError: arguments for a strategy that takes none.
    """
    name, colon, arguments = text.partition(":")
    known = registry()
    if name not in known:
        raise UnknownNameError("strategy", name, known)
    if colon:
        raise UsageError(f"strategy `{name}` takes no arguments, got `{arguments}`")
    return known[name]()
