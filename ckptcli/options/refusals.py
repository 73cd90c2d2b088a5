"""What one option refuses of another, and which of the two gives way.

Two options that were both typed are left for the command to refuse. One that comes from the
environment or a file is a default: the nearer to the command line of the two silences the other,
of two that are as near the one that refuses.

Invariant: of two options that refuse each other both remain only where both were typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ckptcli.options.origins import DEFAULT, FLAG, NEAREST_FIRST

if TYPE_CHECKING:
    from ckptcli.options.option import Option


def _always(own: Any, other: Any) -> bool:
    """Whatever the two values are."""
    del own, other
    return True


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an option refuses.

    Attributes:
        others: the options that it refuses, by their names.
        where: for which of its own and their values; of an option that takes several for each of
            the other's alone, and those alone give way.
        by_default: whether its default refuses too: the others have an effect with it alone, and
            it never gives way itself.
    """

    others: tuple[str, ...]
    where: Callable[[Any, Any], bool] = _always
    by_default: bool = False


def settled(
    options: Sequence[Option], values: Mapping[str, Any], origins: Mapping[str, str]
) -> dict[str, Any]:
    """The values that give way, by name, as they are then; `origins` are of `NEAREST_FIRST`."""
    known = {option.name: option for option in options}
    found: dict[str, Any] = {}
    for option in options:
        for refusal in option.refuses:
            for other in filter(None, map(known.get, refusal.others)):
                now = {**values, **found}
                found |= _yielding(refusal, option, other, now, origins)
    return found


def _yielding(
    refusal: Refusal,
    own: Option,
    other: Option,
    values: Mapping[str, Any],
    origins: Mapping[str, str],
) -> dict[str, Any]:
    """The one of the two that gives way; empty where they get on, or both were typed."""
    is_set = refusal.by_default or values[own.name] != own.default
    refused = _refused(refusal, values[own.name], values[other.name]) if is_set else ()
    if values[other.name] == other.default or not refused:
        return {}
    nearness = [NEAREST_FIRST.index(origins.get(of.name, DEFAULT)) for of in (own, other)]
    if refusal.by_default:
        return {} if origins.get(other.name) == FLAG else _without(other, values, refused)
    if nearness == [0, 0]:
        return {}
    if nearness[0] <= nearness[1]:
        return _without(other, values, refused)
    return {own.name: own.default}


def _refused(refusal: Refusal, own: Any, other: Any) -> Sequence[Any]:
    each = other if isinstance(other, tuple) else (other,)
    return [value for value in each if refusal.where(own, value)]


def _without(option: Option, values: Mapping[str, Any], refused: Sequence[Any]) -> dict[str, Any]:
    value = values[option.name]
    if not isinstance(value, tuple):
        return {option.name: option.default}
    return {option.name: tuple(item for item in value if item not in refused) or option.default}
