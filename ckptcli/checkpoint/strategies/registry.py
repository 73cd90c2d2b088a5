"""The strategies by name. A strategy registers itself; its file is all that it takes.

Invariant: no strategy is loaded before one is asked for, and one in the file of its name alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, TypeVar

import ckptcli.checkpoint.strategies as package
from ckptcli.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from ckptcli.checkpoint.strategies.base import Strategy

_REGISTRY: dict[str, type[Strategy]] = {}

_NEEDED = {
    "keyword": "what it is called",
    "label": "what the device line calls it",
    "name": "what it is called on the command line",
}

StrategyClass = TypeVar("StrategyClass", bound="type[Strategy]")


def register(strategy: StrategyClass) -> StrategyClass:
    """Class decorator: makes the strategy known under its `keyword`."""
    _REGISTRY[strategy.keyword] = strategy
    return strategy


def registry() -> dict[str, type[Strategy]]:
    """Every strategy by name, `none` first, the others by name."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: (item[0] != "none", item[0])))


def _load(keyword: str) -> None:
    """Import the file of its name; without one, all files: `remat` has several strategies."""
    if keyword in _REGISTRY:
        return
    if any(module.name == keyword for module in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{keyword}")
    if keyword not in _REGISTRY:
        registry()


def parse_strategy(text: str) -> Strategy:
    """The strategy that `NAME`, `NAME:ARGUMENTS` or `FILE.py:NAME` stands for.

    A class or an object of the user's own is taken as it is.

    Raises:
        UnknownNameError: no strategy has this name.
        UsageError: arguments that the strategy does not take, or a name that is no strategy.
    """
    keyword, _, arguments = text.partition(":")
    _load(keyword)
    if keyword in _REGISTRY:
        return _REGISTRY[keyword].parse(arguments)
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.checkpoint.user_code import is_user_code, load_name

    if not is_user_code(text):
        raise UnknownNameError("strategy", keyword, registry())
    value = load_name(text)
    strategy = value() if isinstance(value, type) else value
    if not isinstance(strategy, Strategy):
        raise UsageError(
            f"`{text}` is not a strategy",
            "derive it from ckptcli.checkpoint.strategies.base.Strategy",
        )
    _check_whole(text, strategy)
    return strategy


def _check_whole(text: str, strategy: Strategy) -> None:
    """Refuse a strategy that lacks what every run asks of it, before anything is measured."""
    for attribute, meaning in _NEEDED.items():
        if not isinstance(getattr(strategy, attribute, None), str):
            raise UsageError(
                f"strategy `{text}` has no `{attribute}`, a text that says {meaning}",
                f'write `{attribute} = "..."` in the class',
            )
