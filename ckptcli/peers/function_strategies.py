"""What `-s` means for a JAX function of the user's own: where its checkpoints are.

`none` is the function with its checkpoints off, `own` the function as it is, `remat` one checkpoint
around the whole of `none`, or with `lines=FILE:FUNCTION` one around each call of a function of the
user's. Of the others `balanced` is one checkpoint around the whole under its policy; those that
group layers are nothing, since a function has none, and their rows say so.

Invariant: nothing here imports JAX; names of policies are looked up where it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli.checkpoint.policies.grammar import split_outside_brackets
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError

NONE, OWN, REMAT = "none", "own", "remat"
DEFAULT = (NONE, OWN, REMAT)
_KEYS = ("policy", "names", "lines")
_NO_LAYERS = "a function has no layers to group: use remat, or remat:lines=FILE:FUNCTION"


@dataclass(frozen=True, slots=True)
class Place:
    """A function of the user's by its file and its name, as in `def NAME` or `Class.NAME`."""

    file: str
    function: str


@dataclass(frozen=True, slots=True)
class FunctionStrategy:
    """Where checkpoints are.

    Attributes:
        name: as on the command line.
        keyword: `none`, `own` or `remat`.
        policy: what may be saved, as JAX's policies are written; None for nothing.
        names: values with one of these names may be saved too.
        place: whose calls have a checkpoint each; None for one around the whole.
        reason: why it is nothing here; None if it is something.
        reading: in what it is another thing here, for people; "" where it is the same.
    """

    name: str
    keyword: str
    policy: str | None = None
    names: tuple[str, ...] = ()
    place: Place | None = None
    reason: str | None = None
    reading: str = ""


def function_strategies(texts: Sequence[str]) -> list[FunctionStrategy]:
    """The strategies by name: `none` first, which the others are compared with, named or not.

    Raises:
        UnknownNameError: no strategy has one of these names.
        UsageError: a strategy is named twice, or has a wrong argument.
    """
    named = [parse_function_strategy(text) for text in texts or DEFAULT]
    names = [strategy.name for strategy in named]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"strategy `{name}` is given twice", "name each strategy once")
    others = [strategy for strategy in named if strategy.name != NONE]
    return [FunctionStrategy(NONE, NONE), *others]


def parse_function_strategy(text: str) -> FunctionStrategy:
    """The strategy that `text` names.

    Raises:
        UnknownNameError: no strategy has this name.
        UsageError: a wrong argument.
    """
    keyword, _, arguments = text.partition(":")
    if text in (NONE, OWN):
        return FunctionStrategy(text, text)
    if keyword == OWN:
        raise UsageError(f"strategy `own` takes no arguments, got `{arguments}`")
    parts = [part.partition("=") for part in split_outside_brackets(arguments)]
    if keyword != REMAT or not all(key in _KEYS and value for key, _, value in parts):
        return _other(parse_strategy(text))
    values = {key: value for key, _, value in parts}
    place = values.get("lines")
    names = tuple(filter(None, values.get("names", "").split("+")))
    return FunctionStrategy(
        text, REMAT, values.get("policy"), names, None if place is None else _place(place)
    )


def _other(strategy: Strategy) -> FunctionStrategy:
    """One of ckpt's own strategies: what it says that it is elsewhere, if that is one region around
    everything; nothing if it groups layers.
    """
    there = None if strategy.needs_layers else strategy.elsewhere(1)
    policy = None if there is None else there.regions[0].policy
    keyword = getattr(policy, "keyword", None)
    if there is None or keyword is None:
        return FunctionStrategy(strategy.name, strategy.keyword, reason=_NO_LAYERS)
    return FunctionStrategy(strategy.name, REMAT, policy=keyword, reading=there.reading)


def _place(text: str) -> Place:
    file, _, function = text.rpartition(":")
    if not file.endswith(".py") or not function:
        raise UsageError(
            f"`lines={text}` is not FILE.py:FUNCTION",
            "write `remat:lines=model.py:block`, of a method `lines=model.py:Block.__call__`",
        )
    return Place(file, function)
