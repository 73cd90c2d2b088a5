"""What `-s` means for a PyTorch module of the user's own, beyond the strategies that group blocks.

`none` is the module with checkpoints of its own off, `own` the module as it is, `framework` with
the checkpoints that its framework turns on, `reentrant` as `remat` with PyTorch's older kind.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError

NONE, OWN, FRAMEWORK, REENTRANT = "none", "own", "framework", "reentrant"
DEFAULT = (NONE, OWN, "remat")


@dataclass(frozen=True, slots=True)
class ModuleStrategy:
    """Where checkpoints are.

    Attributes:
        name: as on the command line.
        grouping: how blocks are grouped; None where the module or its framework decides.
        is_asked: whether it was named, or stands there unless it has nothing to say.
    """

    name: str
    grouping: Strategy | None
    is_asked: bool = True

    @property
    def is_reentrant(self) -> bool:
        return self.name.partition(":")[0] == REENTRANT


def module_strategies(texts: Sequence[str]) -> list[ModuleStrategy]:
    """The strategies by name: `none` first, which the others are compared with, named or not.

    Raises:
        UnknownNameError: no strategy has one of these names.
        UsageError: a strategy is named twice, or has a wrong argument.
    """
    named = [_parsed(text, bool(texts)) for text in texts or DEFAULT]
    names = [strategy.name for strategy in named]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"strategy `{name}` is given twice", "name each strategy once")
    others = [strategy for strategy in named if strategy.name != NONE]
    return [ModuleStrategy(NONE, parse_strategy(NONE)), *others]


def _parsed(text: str, is_asked: bool) -> ModuleStrategy:
    keyword, colon, arguments = text.partition(":")
    if keyword in (OWN, FRAMEWORK):
        if colon:
            raise UsageError(f"strategy `{keyword}` takes no arguments, got `{arguments}`")
        return ModuleStrategy(keyword, None, is_asked)
    if keyword == REENTRANT:
        return ModuleStrategy(text, parse_strategy(f"remat{colon}{arguments}"), is_asked)
    grouping = parse_strategy(text)
    return ModuleStrategy(grouping.name, grouping, is_asked)
