"""What `-s` means for a PyTorch module of the user's own, beyond the strategies that group blocks.

`none` is the module with checkpoints of its own off, `own` the module as it is, `framework` with
the checkpoints that its framework turns on, `reentrant` as `remat` with PyTorch's older kind,
`selective:OPS` as `remat` with what these ops of PyTorch return saved, `offload` the module with
what it saves on the host, `compile:budget=SHARE` compiled, to hold that share of what it could.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy, registry
from ckptcli.checkpoint.user_code import is_user_code
from ckptcli.errors import UnknownNameError, UsageError

NONE, OWN, FRAMEWORK, OFFLOAD = "none", "own", "framework", "offload"
REENTRANT, SELECTIVE, COMPILE = "reentrant", "selective", "compile"
_KEYWORDS = (OWN, FRAMEWORK, OFFLOAD, REENTRANT, SELECTIVE, COMPILE)
_OP = re.compile(r"[\w*]+")
DEFAULT = (NONE, OWN, "remat")


@dataclass(frozen=True, slots=True)
class ModuleStrategy:
    """Where checkpoints are.

    Attributes:
        name: as on the command line.
        grouping: how blocks are grouped; None where the module or its framework decides.
        saved_ops: names of PyTorch's ops that checkpoints save what they return of, `*` in one
            for any letters; none where a policy decides.
        budget: of a module that is compiled, the share of what it could hold that it may, from 0
            to 1; None for the compiler's own.
        is_asked: whether it was named, or stands there unless it has nothing to say.
    """

    name: str
    grouping: Strategy | None
    is_asked: bool = True
    saved_ops: Sequence[str] = ()
    budget: float | None = None

    @property
    def keyword(self) -> str:
        """The name without arguments."""
        return self.name.partition(":")[0]

    @property
    def is_reentrant(self) -> bool:
        return self.keyword == REENTRANT


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
    if keyword in (OWN, FRAMEWORK, OFFLOAD):
        if colon:
            raise UsageError(f"strategy `{keyword}` takes no arguments, got `{arguments}`")
        return ModuleStrategy(keyword, None, is_asked)
    if keyword == REENTRANT:
        return ModuleStrategy(text, parse_strategy(f"remat{colon}{arguments}"), is_asked)
    if keyword == COMPILE:
        return ModuleStrategy(text, None, is_asked, budget=_budget(text, arguments))
    if keyword == SELECTIVE:
        ops, comma, rest = arguments.partition(",")
        if not all(_OP.fullmatch(op) for op in ops.split("+")):
            raise UsageError(
                f"strategy `{text}` names no ops of PyTorch",
                "write `selective:mm+addmm`, or `selective:mm+addmm,every=2`",
            )
        grouping = parse_strategy(f"remat{':' if comma else ''}{rest}")
        return ModuleStrategy(text, grouping, is_asked, ops.split("+"))
    if not is_user_code(text) and keyword not in registry():
        raise UnknownNameError("strategy", keyword, [*registry(), *_KEYWORDS])
    grouping = parse_strategy(text)
    return ModuleStrategy(grouping.name, grouping, is_asked)


def _budget(text: str, arguments: str) -> float | None:
    if not arguments and ":" not in text:
        return None
    name, _, value = arguments.partition("=")
    with suppress(ValueError):
        if name == "budget" and 0.0 <= float(value) <= 1.0:
            return float(value)
    raise UsageError(
        f"strategy `{text}` names no budget from 0 to 1", "write `compile:budget=0.5`, or `compile`"
    )
