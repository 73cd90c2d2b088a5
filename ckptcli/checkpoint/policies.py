"""Which values of a region may be saved.

A policy is asked for each value and answers whether it *may* be saved; a value is saved only if the
backward pass needs it. Region inputs are always available.

Source: JAX `jax.checkpoint_policies`; `docs/policies.md` says what differs: a name means the value
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ckptcli.checkpoint.user_code import is_user_code, load_name
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.graph import Node

DOTS = frozenset(
    {"matmul", "linear", *(f"conv{t}{d}d" for d in (1, 2, 3) for t in ("", "_transpose"))}
)
"""Ops that JAX's `dots_saveable` counts: products and convolutions."""


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """What a policy is told of a value: never the value itself.

    Attributes:
        op: the op that made it.
        name: its name, if it has one.
        batch_dims: leading dims over which a product is repeated.
    """

    op: str
    name: str | None
    batch_dims: int
    params: Any

    @classmethod
    def of(cls, node: Node, name: str | None = None) -> ValueInfo:
        """What can be told of the value of `node`."""
        op = node.op
        assert op is not None
        return cls(op.name, name, getattr(node.params, "batch_dims", 0), node.params)


OFFLOAD: Literal["offload"] = "offload"
"""The answer of a policy that saves a value in the host's memory."""

Answer: TypeAlias = bool | Literal["offload"]
Policy: TypeAlias = Callable[[ValueInfo], Answer]


def nothing_saveable(value: ValueInfo) -> bool:
    """Save region inputs alone."""
    return False


def everything_saveable(value: ValueInfo) -> bool:
    """Save whatever is needed: the region has no effect."""
    return True


def dots_saveable(value: ValueInfo) -> bool:
    """Save outputs of matrix products and convolutions."""
    return value.op in DOTS


def dots_with_no_batch_dims_saveable(value: ValueInfo) -> bool:
    """Save outputs of matrix products without batch dims; no convolutions."""
    return value.op in ("matmul", "linear") and value.batch_dims == 0


def offload_dot_with_no_batch_dims(value: ValueInfo) -> Answer:
    """Save what `dots_with_no_batch_dims_saveable` does, on the host."""
    return OFFLOAD if dots_with_no_batch_dims_saveable(value) else False


@dataclass(frozen=True, slots=True)
class SaveOnlyTheseNames:
    """`save_only_these_names` as data."""

    names: tuple[str, ...]

    def __call__(self, value: ValueInfo) -> bool:
        return value.name in self.names


@dataclass(frozen=True, slots=True)
class SaveAnyNamesButThese:
    """`save_any_names_but_these` as data."""

    names: tuple[str, ...]

    def __call__(self, value: ValueInfo) -> bool:
        return value.name is not None and value.name not in self.names


@dataclass(frozen=True, slots=True)
class SaveFromBothPolicies:
    """`save_from_both_policies` as data."""

    first: Policy
    second: Policy

    def __call__(self, value: ValueInfo) -> Answer:
        return self.first(value) or self.second(value)


@dataclass(frozen=True, slots=True)
class SaveAndOffloadOnlyTheseNames:
    """`save_and_offload_only_these_names` as data."""

    names_saved: tuple[str, ...]
    names_offloaded: tuple[str, ...]

    def __call__(self, value: ValueInfo) -> Answer:
        if value.name in self.names_offloaded:
            return OFFLOAD
        return value.name in self.names_saved


def save_only_these_names(*names: str) -> Policy:
    """Save values with one of these names."""
    return SaveOnlyTheseNames(names)


def save_any_names_but_these(*names: str) -> Policy:
    """Save values that have a name, but none of these; without arguments, all that have one."""
    return SaveAnyNamesButThese(names)


def save_and_offload_only_these_names(
    names_saved: Sequence[str], names_offloaded: Sequence[str]
) -> Policy:
    """Save values with one of the first names on the device, with one of the second on the host.

    Raises:
        UsageError: a name in both, or no name to offload.
    """
    both = sorted(set(names_saved) & set(names_offloaded))
    if both:
        raise UsageError(f"`{both[0]}` is both to be saved and to be offloaded", "name it once")
    if not names_offloaded:
        raise UsageError(
            "policy `save_and_offload_only_these_names` needs names to offload",
            "write `save_and_offload_only_these_names(SAVED, ... | OFFLOADED, ...)`",
        )
    return SaveAndOffloadOnlyTheseNames(tuple(names_saved), tuple(names_offloaded))


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Save what either saves: a union, as in JAX. Where both save, the first says where."""
    return SaveFromBothPolicies(first, second)


def names_in(policy: Policy) -> set[str]:
    """The names that a policy mentions; those in a function of the user's own are not known."""
    names: set[str] = set()
    stack = [policy]
    while stack:
        current = stack.pop()
        if isinstance(current, SaveOnlyTheseNames | SaveAnyNamesButThese):
            names.update(current.names)
        elif isinstance(current, SaveAndOffloadOnlyTheseNames):
            names.update(current.names_saved, current.names_offloaded)
        elif isinstance(current, SaveFromBothPolicies):
            stack += [current.first, current.second]
    return names


def moves_to_host(policy: Policy) -> bool:
    """Whether a policy is one that offloads, or is made of one; not known of the user's own."""
    stack = [policy]
    while stack:
        current = stack.pop()
        if current is offload_dot_with_no_batch_dims:
            return True
        if isinstance(current, SaveAndOffloadOnlyTheseNames):
            return True
        if isinstance(current, SaveFromBothPolicies):
            stack += [current.first, current.second]
    return False


_PLAIN: dict[str, Policy] = {
    policy.__name__: policy
    for policy in (
        nothing_saveable,
        everything_saveable,
        dots_saveable,
        dots_with_no_batch_dims_saveable,
        offload_dot_with_no_batch_dims,
    )
}
_WITH_NAMES: dict[str, Callable[..., Policy]] = {
    policy.__name__: policy for policy in (save_only_these_names, save_any_names_but_these)
}
_OF_POLICIES = save_from_both_policies.__name__
_OF_TWO_LISTS = save_and_offload_only_these_names.__name__


def parse_policy(text: str) -> Policy:
    """The policy that `NAME`, `NAME(ARGUMENT, ...)` or `FILE.py:NAME` stands for.

    Raises:
        UnknownNameError: no policy has this name.
        UsageError: arguments that do not fit it, or a name that is no function.
    """
    if is_user_code(text):
        policy = load_name(text.strip())
        if not callable(policy):
            raise UsageError(f"policy `{text}` is not a function", "it takes a `ValueInfo`")
        return policy
    name, bracket, rest = text.strip().partition("(")
    known = [*_PLAIN, *_WITH_NAMES, _OF_POLICIES, _OF_TWO_LISTS]
    if name not in known:
        raise UnknownNameError("policy", name, known)
    if bracket and not (rest.endswith(")") and _is_balanced(rest[:-1])):
        raise UsageError(
            f"the brackets of policy `{text}` do not match", f"write `{name}(...)`, closed once"
        )
    if name == _OF_TWO_LISTS:
        saved, _, offloaded = rest.removesuffix(")").partition("|")
        lists = (split_outside_brackets(saved), split_outside_brackets(offloaded))
        return save_and_offload_only_these_names(*lists)
    arguments = split_outside_brackets(rest[:-1]) if bracket else []
    if name in _PLAIN:
        if arguments:
            raise UsageError(f"policy `{name}` takes no arguments, got `{rest[:-1]}`")
        return _PLAIN[name]
    if name in _WITH_NAMES:
        if not arguments and name == save_only_these_names.__name__:
            raise UsageError(f"policy `{name}` needs names", f"write `{name}(NAME, ...)`")
        return _WITH_NAMES[name](*arguments)
    if len(arguments) != 2:
        raise UsageError(f"policy `{name}` takes two policies, got {len(arguments)}")
    return save_from_both_policies(*(parse_policy(argument) for argument in arguments))


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def split_outside_brackets(text: str, separator: str = ",") -> list[str]:
    """`text` cut at each separator that is not inside brackets; parts are stripped."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
