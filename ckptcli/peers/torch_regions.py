"""A strategy's regions over the children of a PyTorch module: which they are, and how they run.

The layers of a module are its direct children. An only child that is a Sequential, ModuleList or
ModuleDict is entered; a child that has no forward of its own, as a ModuleList, is never called, so
that its elements stand for it. A Sequential among others is one child.

A region without a parameter has nothing to save by itself: it joins the one before it, or the one
behind it at the start. Where no Sequential calls the children, the user's own forward does, in an
order and with work between that a region cannot contain: a checkpoint then fits around one child at
a time, and a child without a parameter has none. A ScriptModule can be called inside a region, but
what it calls, and how, is out of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ckptcli.checkpoint.policies import Policy
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.peers.base import NoPeer, regions_of
from ckptcli.peers.torch_engine import region_caller

_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
_NOTHING = "the module has no children to checkpoint"
_NO_PARAMETERS = "no child of the module has a parameter: there is nothing to checkpoint"
_NONE_CHOSEN = "no child in a region has a parameter: there is nothing to checkpoint"
_NOT_ALONE = (
    "the module's own forward calls its children, so that a checkpoint fits around one at a time: "
    "call them from an nn.Sequential, or use -s remat"
)

Part = tuple[str, torch.nn.Module]
"""Path and module."""


@dataclass(frozen=True, slots=True)
class Children:
    """What checkpoints go around.

    Attributes:
        parts: in order; one that a Sequential has twice is there twice.
        caller: the Sequential that calls them one after the other; None: the user's own forward.
    """

    parts: Sequence[Part]
    caller: torch.nn.Module | None

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.parts]


@dataclass(frozen=True, slots=True)
class ModuleRegion:
    """Consecutive children under one checkpoint; without one where the policy is None."""

    parts: Sequence[Part]
    policy: Policy | None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.parts)


def children_of(module: torch.nn.Module) -> Children:
    """The children of a module that has none but a container, those of the container."""
    path, parent = "", module
    parts = _parts("", module)
    while len(parts) == 1 and isinstance(parts[0][1], _CONTAINERS):
        ((path, parent),) = parts
        parts = _parts(f"{path}.", parent)
    if isinstance(parent, torch.jit.ScriptModule):
        return Children([], None)
    if _has_forward_of(torch.nn.Sequential, parent):
        return Children(parts, parent)
    return Children(_called(parts), None)


def without_caller(children: Children) -> Children:
    """The same where the Sequential is not called as a whole."""
    return Children(_called(children.parts), None)


def _parts(prefix: str, module: torch.nn.Module) -> list[Part]:
    return [(f"{prefix}{name}", m) for name, m in module._modules.items() if m is not None]


def _has_forward_of(kind: type[torch.nn.Module], module: torch.nn.Module) -> bool:
    """Neither its class nor the module itself, as one that is compiled, has another."""
    return getattr(module.forward, "__func__", None) is kind.forward


def _called(parts: Sequence[Part]) -> list[Part]:
    """Each module that can be called, once; elements instead of what has no forward."""
    modules: dict[int, Part] = {}
    waiting = list(parts)[::-1]
    while waiting:
        path, module = waiting.pop()
        if _has_forward_of(torch.nn.Module, module):
            waiting += _parts(f"{path}.", module)[::-1]
        else:
            modules.setdefault(id(module), (path, module))
    return list(modules.values())


def module_regions(children: Children, strategy: Strategy) -> list[ModuleRegion]:
    """How the strategy groups the children; all of them, in order.

    Raises:
        NoPeer: nothing to checkpoint, a strategy that decides op by op, or a region of several
            children that no Sequential calls.
    """
    if not children.parts:
        raise NoPeer(_NOTHING)
    first, regions = 0, []
    for region in regions_of(strategy, len(children.parts)):
        regions.append(ModuleRegion(children.parts[first : first + region.size], region.policy))
        first += region.size
    if all(region.policy is None for region in regions):
        return regions
    some_have = any(_has_parameters(region) for region in regions)
    regions = _alone(regions) if children.caller is None else _joined(regions)
    if all(region.policy is None for region in regions):
        raise NoPeer(_NONE_CHOSEN if some_have else _NO_PARAMETERS)
    return regions


def _alone(regions: Sequence[ModuleRegion]) -> list[ModuleRegion]:
    if any(region.policy is not None and len(region.parts) > 1 for region in regions):
        raise NoPeer(_NOT_ALONE)
    return [r if _can_stand_alone(r) else replace(r, policy=None) for r in regions]


def _can_stand_alone(region: ModuleRegion) -> bool:
    """A ScriptModule keeps its own forward, whatever is put in its place."""
    compiled = any(isinstance(module, torch.jit.ScriptModule) for _, module in region.parts)
    return _has_parameters(region) and not compiled


def _joined(regions: Sequence[ModuleRegion]) -> list[ModuleRegion]:
    groups: list[ModuleRegion] = []
    leading: list[Part] = []
    for region in regions:
        if region.policy is None or _has_parameters(region):
            groups.append(replace(region, parts=[*leading, *region.parts]))
            leading = []
        elif groups:
            groups[-1] = replace(groups[-1], parts=[*groups[-1].parts, *region.parts])
        else:
            leading += region.parts
    return [*groups, *([ModuleRegion(leading, None)] if leading else [])]


def _has_parameters(region: ModuleRegion) -> bool:
    return any(True for _, module in region.parts for _ in module.parameters())


def checkpoint_regions(children: Children, regions: Sequence[ModuleRegion]) -> None:
    """Have each region computed again in backward.

    Raises:
        NoPeer: a policy that PyTorch has no counterpart for.
    """
    callers = [(region, region_caller(region.policy)) for region in regions]
    if children.caller is not None:
        children.caller.forward = _one_after_the_other(callers)
        return
    for region, call in callers:
        for _, module in region.parts if region.policy is not None else ():
            module.forward = _around(call, module.forward)


def _one_after_the_other(
    callers: Sequence[tuple[ModuleRegion, Callable[..., Any]]],
) -> Callable[[Any], Any]:
    groups = [(call, [module for _, module in region.parts]) for region, call in callers]

    def forward(input: Any) -> Any:
        for call, modules in groups:
            input = call(_chain, modules, input)
        return input

    return forward


def _chain(modules: Sequence[torch.nn.Module], value: Any) -> Any:
    for module in modules:
        value = module(value)
    return value


def _around(call: Callable[..., Any], forward: Callable[..., Any]) -> Callable[..., Any]:
    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        return call(forward, *arguments, **keywords)

    return checkpointed
