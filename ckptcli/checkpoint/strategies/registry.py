"""The strategies by name. A strategy registers itself; its file is all that it takes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TypeVar

import ckptcli.checkpoint.strategies as package
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.user_code import is_user_code, load_name
from ckptcli.errors import UnknownNameError, UsageError

_REGISTRY: dict[str, type[Strategy]] = {}

StrategyClass = TypeVar("StrategyClass", bound=type[Strategy])


def register(strategy: StrategyClass) -> StrategyClass:
    """Class decorator: makes the strategy known under its `keyword`."""
    _REGISTRY[strategy.keyword] = strategy
    return strategy


def registry() -> dict[str, type[Strategy]]:
    """Every strategy by name, `none` first, the others by name."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: (item[0] != "none", item[0])))


def parse_strategy(text: str) -> Strategy:
    """The strategy that `NAME`, `NAME:ARGUMENTS` or `FILE.py:NAME` stands for.

    A class or an object of the user's own is taken as it is.

    Raises:
        UnknownNameError: no strategy has this name.
        UsageError: arguments that the strategy does not take, or a name that is no strategy.
    """
    keyword, _, arguments = text.partition(":")
    strategies = registry()
    if keyword in strategies:
        return strategies[keyword].parse(arguments)
    if not is_user_code(text):
        raise UnknownNameError("strategy", keyword, strategies)
    value = load_name(text)
    strategy = value() if isinstance(value, type) else value
    if not isinstance(strategy, Strategy):
        raise UsageError(
            f"`{text}` is not a strategy",
            "derive it from ckptcli.checkpoint.strategies.base.Strategy",
        )
    return strategy
