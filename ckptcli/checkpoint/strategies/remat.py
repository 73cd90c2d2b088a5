"""`remat`, `segments`: layers grouped into regions that are recomputed from their inputs.

Source: JAX `jax.checkpoint` and its policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from ckptcli.checkpoint.layer_choice import LayerChoice
from ckptcli.checkpoint.policies import (
    Policy,
    nothing_saveable,
    parse_policy,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.policies.grammar import split_outside_brackets
from ckptcli.checkpoint.segments import even_sizes
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.checkpoint.strategies.registry import register
from ckptcli.errors import UnknownNameError, UsageError

_ONLY = "only"
_KEYS = ("every", "policy", "names", "last", _ONLY)


@register
class Remat(Strategy):
    """Regions of `every` layers, each recomputed from its inputs and what the policy saves.

    Layers that do not divide evenly: the number of regions for which sizes come nearest to `every`.
    With `only` the layers that it names are in regions, each run of them grouped by itself; all
    others are plain.
    """

    keyword: ClassVar[str] = "remat"
    summary: ClassVar[str] = "recompute regions of K layers from their inputs (jax.checkpoint)"
    grammar: ClassVar[str] = "remat[:every=K][,policy=P][,names=a+b][,last=plain][,only=I,J..K]"
    label: ClassVar[str] = "Remat"
    needs_layers: ClassVar[bool] = True

    def __init__(
        self,
        every: int = 1,
        policy: Policy = nothing_saveable,
        last_plain: bool = False,
        text: str = "remat",
        only: LayerChoice | None = None,
    ) -> None:
        self.every = every
        self.policy = policy
        self.last_plain = last_plain
        self.only = only
        self._text = text

    @property
    def name(self) -> str:
        return self._text

    @classmethod
    def parse(cls, arguments: str) -> Remat:
        """`every=K`, `policy=P`, `names=a+b` (added to what the policy allows), `last=plain`,
        `only=0,2,5..7`.
        """
        values = _key_values(cls.keyword, arguments)
        policy = parse_policy(values["policy"]) if "policy" in values else nothing_saveable
        if "names" in values:
            policy = save_from_both_policies(
                policy, save_only_these_names(*values["names"].split("+"))
            )
        if values.get("last", "plain") != "plain":
            raise UsageError(f"`last={values['last']}` is not `last=plain`")
        if "last" in values and _ONLY in values:
            raise UsageError(
                "`last=plain` and `only` both say which layers are plain", "leave out `last=plain`"
            )
        only = LayerChoice.parse(_ONLY, values[_ONLY]) if _ONLY in values else None
        every = _positive("every", values.get("every", "1"))
        text = f"{cls.keyword}:{arguments}" if arguments else cls.keyword
        return cls(every, policy, "last" in values, text, only)

    def layer_regions(self, count: int) -> Sequence[LayerRegion]:
        if self.only is not None:
            return list(self._chosen_regions(self.only, count))
        return _regions(self._sizes(count), self.policy, self.last_plain)

    def _sizes(self, count: int) -> Sequence[int]:
        return even_sizes(count, max(1, (2 * count + self.every) // (2 * self.every)))

    def _chosen_regions(self, only: LayerChoice, count: int) -> Iterator[LayerRegion]:
        done = 0
        for first, size in only.runs(count):
            if first > done:
                yield LayerRegion(first - done, None)
            yield from _regions(self._sizes(size), self.policy, False)
            done = first + size
        if done < count:
            yield LayerRegion(count - done, None)

    def lints(self, count: int) -> list[str]:
        if self.only is not None:
            return self._lints_of_choice(self.only, count)
        lines = []
        if self.every > count:
            lines.append(
                f"every={self.every} is more than the {count} layers, which make one region: use a "
                "smaller number"
            )
        if self.last_plain and len(self.layer_regions(count)) == 1:
            lines.append(
                f"last=plain leaves all {count} layers plain, since they make one region: use a "
                "smaller every=K"
            )
        return lines

    def _lints_of_choice(self, only: LayerChoice, count: int) -> list[str]:
        lines = []
        if (beyond := only.beyond(count)) is not None:
            lines.append(
                f"only names layer {beyond}, and the {count} layers are 0 to {count - 1}: leave it "
                "out"
            )
        longest = max((size for _, size in only.runs(count)), default=0)
        if 0 < longest < self.every:
            lines.append(
                f"every={self.every} is more than the {longest} layers in a row that only names, "
                "which make one region: use a smaller number"
            )
        return lines


@register
class Segments(Strategy):
    """A fixed number of regions."""

    keyword: ClassVar[str] = "segments"
    summary: ClassVar[str] = "recompute K regions of equal size, longer first"
    grammar: ClassVar[str] = "segments:K"
    label: ClassVar[str] = "Segments"
    needs_layers: ClassVar[bool] = True

    def __init__(self, segments: int) -> None:
        self.segments = segments

    @property
    def name(self) -> str:
        return f"segments:{self.segments}"

    @classmethod
    def parse(cls, arguments: str) -> Segments:
        """A positive whole number."""
        if not arguments:
            raise UsageError("strategy `segments` needs a number of regions", "write `segments:4`")
        return cls(_positive("segments", arguments))

    def layer_regions(self, count: int) -> Sequence[LayerRegion]:
        return _regions(even_sizes(count, min(count, self.segments)), nothing_saveable, False)

    def lints(self, count: int) -> list[str]:
        if self.segments <= count:
            return []
        return [f"{self.segments} regions of {count} layers are {count}: use segments:{count}"]


def _regions(sizes: Sequence[int], policy: Policy, last_plain: bool) -> list[LayerRegion]:
    one_of = {size: LayerRegion(size, policy) for size in set(sizes)}
    regions = [one_of[size] for size in sizes]
    if last_plain:
        regions[-1] = LayerRegion(sizes[-1], None)
    return regions


def _key_values(strategy: str, text: str) -> dict[str, str]:
    """Of each key its value; `only=0,2,5` has commas in it, so that what follows belongs to it."""
    values: dict[str, str] = {}
    key = ""
    for part in split_outside_brackets(text):
        if key == _ONLY and "=" not in part:
            values[_ONLY] += f",{part}"
            continue
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise UsageError(f"`{part}` in `{strategy}:{text}` is not KEY=VALUE")
        if key not in _KEYS:
            raise UnknownNameError(f"key of strategy `{strategy}`:", key, _KEYS)
        values[key] = value
    return values


def _positive(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"`{key}={text}` is not a whole number of at least 1")
    return int(text)
