"""The policies that go by names: these, all but these, and these on the device, those on the host.

A name means the value itself, for every consumer.
"""

from __future__ import annotations

import ast
from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ckptcli.checkpoint.policies.base import (
    OFFLOAD,
    Answer,
    BasePolicy,
    NoCounterpart,
    Policy,
    TorchOps,
    ValueInfo,
)
from ckptcli.checkpoint.policies.grammar import name_of, operands_of
from ckptcli.checkpoint.policies.registry import register
from ckptcli.errors import UsageError


class _ByName(BasePolicy, ABC):
    __slots__ = ()

    def in_torch(self, ops: TorchOps) -> frozenset[str]:
        raise NoCounterpart("PyTorch's selective checkpointing decides by op: it knows no names")


@register
@dataclass(frozen=True, slots=True)
class SaveOnlyTheseNames(_ByName):
    """Save values with one of these names."""

    keyword: ClassVar[str] = "save_only_these_names"
    summary: ClassVar[str] = "values with one of these names"

    names_saved: tuple[str, ...]

    @classmethod
    def parse(
        cls, arguments: Sequence[ast.expr], policy_of: Callable[[ast.expr], Policy]
    ) -> SaveOnlyTheseNames:
        if not arguments:
            raise UsageError(
                f"policy `{cls.keyword}` needs names", f"write `{cls.keyword}(NAME, ...)`"
            )
        return cls(tuple(map(name_of, arguments)))

    def __call__(self, value: ValueInfo) -> bool:
        return value.name in self.names_saved

    def names(self) -> frozenset[str]:
        return frozenset(self.names_saved)

    def in_jax(self, policies: Any) -> Any:
        return policies.save_only_these_names(*self.names_saved)


@register
@dataclass(frozen=True, slots=True)
class SaveAnyNamesButThese(_ByName):
    """Save values that have a name, but none of these."""

    keyword: ClassVar[str] = "save_any_names_but_these"
    summary: ClassVar[str] = "values with any other name"

    names_not_saved: tuple[str, ...]

    @classmethod
    def parse(
        cls, arguments: Sequence[ast.expr], policy_of: Callable[[ast.expr], Policy]
    ) -> SaveAnyNamesButThese:
        return cls(tuple(map(name_of, arguments)))

    def __call__(self, value: ValueInfo) -> bool:
        return value.name is not None and value.name not in self.names_not_saved

    def names(self) -> frozenset[str]:
        return frozenset(self.names_not_saved)

    def in_jax(self, policies: Any) -> Any:
        return policies.save_any_names_but_these(*self.names_not_saved)


@register
@dataclass(frozen=True, slots=True)
class SaveAndOffloadOnlyTheseNames(_ByName):
    """Save values with one of the first names on the device, with one of the second on the host.

    Raises:
        UsageError: a name in both, or no name to offload.
    """

    keyword: ClassVar[str] = "save_and_offload_only_these_names"
    summary: ClassVar[str] = (
        "values named a or b on the device, c or d on the host; in Python, two lists"
    )

    names_saved: tuple[str, ...]
    names_offloaded: tuple[str, ...]

    def __post_init__(self) -> None:
        both = sorted(set(self.names_saved) & set(self.names_offloaded))
        if both:
            raise UsageError(f"`{both[0]}` is both to be saved and to be offloaded", "name it once")
        if not self.names_offloaded:
            raise UsageError(
                f"policy `{self.keyword}` needs names to offload",
                f"write `{self.keyword}(SAVED, ... | OFFLOADED, ...)`",
            )

    @classmethod
    def parse(
        cls, arguments: Sequence[ast.expr], policy_of: Callable[[ast.expr], Policy]
    ) -> SaveAndOffloadOnlyTheseNames:
        """`SAVED, ... | OFFLOADED, ...`: the argument with the bar is the end of one list and the
        beginning of the other.
        """
        saved: list[str] = []
        offloaded: list[str] = []
        for argument in arguments:
            first, *others = map(name_of, operands_of(argument))
            if others and not offloaded:
                saved.append(first)
                offloaded.append("|".join(others))
            else:
                (offloaded or saved).append(name_of(argument))
        return cls(tuple(filter(None, saved)), tuple(filter(None, offloaded)))

    def __call__(self, value: ValueInfo) -> Answer:
        if value.name in self.names_offloaded:
            return OFFLOAD
        return value.name in self.names_saved

    def names(self) -> frozenset[str]:
        return frozenset((*self.names_saved, *self.names_offloaded))

    @property
    def moves_to_host(self) -> bool:
        return True

    def in_jax(self, policies: Any) -> Any:
        return policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(self.names_saved),
            names_which_can_be_offloaded=list(self.names_offloaded),
            offload_src="device",
            offload_dst="pinned_host",
        )


def save_only_these_names(*names: str) -> SaveOnlyTheseNames:
    """Save values with one of these names."""
    return SaveOnlyTheseNames(names)


def save_any_names_but_these(*names: str) -> SaveAnyNamesButThese:
    """Save values that have a name, but none of these; without arguments, all that have one."""
    return SaveAnyNamesButThese(names)


def save_and_offload_only_these_names(
    names_saved: Sequence[str], names_offloaded: Sequence[str]
) -> SaveAndOffloadOnlyTheseNames:
    """Save values with one of the first names on the device, with one of the second on the host.

    Raises:
        UsageError: a name in both, or no name to offload.
    """
    return SaveAndOffloadOnlyTheseNames(tuple(names_saved), tuple(names_offloaded))
