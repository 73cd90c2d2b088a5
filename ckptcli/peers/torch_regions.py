"""A strategy's regions over the blocks of a PyTorch module: which they are, and how they run.

A block is checkpointed as `torch.utils.checkpoint.checkpoint(block, ...)` does it: what is computed
again is the call, its hooks inside. Several blocks fit under one checkpoint where a Sequential
calls them, or the module's own forward in a plain loop; what a strategy groups across the end of a
list is cut there. In a Sequential a region has what lies between its blocks too, and one without a
parameter, which has nothing to save by itself, joins the one before it (at the start, the one
behind it).

A ScriptModule can be called inside a region, but keeps its own call, whatever is put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from ckptcli.checkpoint.policies import Policy, described
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.peers.base import NoPeer, regions_of
from ckptcli.peers.module_strategies import ModuleStrategy
from ckptcli.peers.torch_blocks import Blocks, Part, Run
from ckptcli.peers.torch_engine import AtenOps, aten_ops, region_caller, saving_ops
from ckptcli.peers.torch_loops import chained, passing_on
from ckptcli.peers.torch_own import around

_NOTHING = "the module has no block to checkpoint: no child with a parameter"
_NONE_CHOSEN = "no block in a region has a parameter: there is nothing to checkpoint"
_NOT_ALONE = (
    "the module's own forward calls its blocks, and not in a plain loop, so that a checkpoint fits "
    "around one at a time: call them from an nn.Sequential, or use -s remat"
)


@dataclass(frozen=True, slots=True)
class ModuleRegion:
    """Parts of one run under one checkpoint; without one where the policy is None."""

    run: Run
    parts: Sequence[Part]
    policy: Policy | None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.parts)

    @property
    def has_parameters(self) -> bool:
        return any(True for _, module in self.parts for _ in module.parameters())

    @property
    def has_several_blocks(self) -> bool:
        blocks = self.run.blocks
        return self.policy is not None and sum(part in blocks for part in self.parts) > 1

    @property
    def is_script(self) -> bool:
        return any(isinstance(module, torch.jit.ScriptModule) for _, module in self.parts)

    @property
    def is_in_caller(self) -> bool:
        """Whether the Sequential's forward has the checkpoint, not the call of a block."""
        several = len(self.parts) > 1 or self.is_script
        return self.policy is not None and self.run.caller is not None and several


def module_regions(blocks: Blocks, strategy: Strategy) -> list[ModuleRegion]:
    """How the strategy groups the blocks, in order; parts between are in no region.

    Raises:
        NoPeer: nothing to checkpoint, a strategy that decides op by op, or a region of several
            blocks that nothing calls one after the other.
    """
    if not blocks.parts:
        raise NoPeer(_NOTHING)
    grouped = list(regions_of(strategy, len(blocks.parts)))
    if all(region.policy is None for region in grouped):
        return []
    regions: list[ModuleRegion] = []
    for run, pieces in zip(blocks.runs, _by_run(grouped, blocks.runs)):
        regions += _in_run(run, pieces)
    if all(region.policy is None for region in regions):
        some_have = any(True for _, module in blocks.parts for _ in module.parameters())
        raise NoPeer(_NONE_CHOSEN if some_have else _NOTHING)
    if _has_groups(grouped) and not any(region.has_several_blocks for region in regions):
        raise NoPeer(_NOT_ALONE)
    return regions


def _has_groups(grouped: Sequence[LayerRegion]) -> bool:
    return any(region.policy is not None and region.size > 1 for region in grouped)


def _by_run(grouped: Sequence[LayerRegion], runs: Sequence[Run]) -> Iterator[list[LayerRegion]]:
    """The regions of each run: one that crosses the end of a run is cut there."""
    waiting = list(grouped)[::-1]
    for run in runs:
        left, pieces = len(run.counted), []
        while left:
            region = waiting.pop()
            size = min(left, region.size)
            pieces.append(replace(region, size=size))
            left -= size
            if size < region.size:
                waiting.append(replace(region, size=region.size - size))
        yield pieces


def _in_run(run: Run, pieces: Sequence[LayerRegion]) -> list[ModuleRegion]:
    regions, first = [], 0
    for piece in pieces:
        places = run.counted[first : first + piece.size]
        first += piece.size
        if run.caller is not None:
            places = range(places[0], places[-1] + 1)
        elif piece.policy is not None and len(places) > 1 and not run.is_loop:
            raise NoPeer(_NOT_ALONE)
        regions.append(ModuleRegion(run, [run.parts[place] for place in places], piece.policy))
    if run.caller is not None:
        return _joined(regions)
    return [replace(r, policy=None) if r.is_script else r for r in regions]


def _joined(regions: Sequence[ModuleRegion]) -> list[ModuleRegion]:
    groups: list[ModuleRegion] = []
    leading: list[Part] = []
    for region in regions:
        if region.policy is None or region.has_parameters:
            groups.append(replace(region, parts=[*leading, *region.parts]))
            leading = []
        elif groups:
            groups[-1] = replace(groups[-1], parts=[*groups[-1].parts, *region.parts])
        else:
            leading += region.parts
    return [*groups, *([replace(regions[0], parts=leading, policy=None)] if leading else [])]


def checkpoint_regions(regions: Sequence[ModuleRegion], strategy: ModuleStrategy) -> None:
    """Have each region computed again in backward, under the strategy's kind of checkpoint.

    Raises:
        NoPeer: a policy that PyTorch has no counterpart for, or that its older kind has not, or ops
            that PyTorch does not have.
    """
    callers = [(region, around(_caller(region.policy, strategy))) for region in regions]
    seen: set[int] = set()
    for region, call in callers:
        modules = [module for _, module in region.parts]
        if region.policy is not None and not region.is_in_caller and id(modules[0]) not in seen:
            seen.add(id(modules[0]))
            _checkpoint_calls(modules, call)
    for run in {id(region.run): region.run for region in regions}.values():
        groups = [(region, call) for region, call in callers if region.run is run]
        if any(region.is_in_caller for region, _ in groups):
            assert run.caller is not None
            run.caller.forward = _one_after_the_other(run, groups)


def _caller(policy: Policy | None, strategy: ModuleStrategy) -> Callable[..., Any]:
    if policy is not None and strategy.saved_ops:
        return saving_ops(frozenset(aten_ops(strategy.saved_ops)))
    if not strategy.is_reentrant or policy is None:
        return region_caller(policy)
    if described(policy).in_torch(AtenOps()) != frozenset():
        raise NoPeer("PyTorch's reentrant checkpoint saves nothing: it has no policy")
    return partial(checkpoint, use_reentrant=True)


def _one_after_the_other(
    run: Run, groups: Sequence[tuple[ModuleRegion, Callable[..., Any]]]
) -> Callable[[Any], Any]:
    """The forward of a Sequential: regions of several parts under their checkpoints, every other
    part called as it is, which for a region of one has its checkpoint inside.
    """
    steps: list[tuple[Callable[..., Any] | None, list[torch.nn.Module]]] = []
    place = 0
    for region, call in groups:
        start = next(i for i in range(place, len(run.parts)) if run.parts[i] is region.parts[0])
        steps += [(None, [module]) for _, module in run.parts[place:start]]
        modules = [module for _, module in region.parts]
        steps.append((call if region.is_in_caller else None, modules))
        place = start + len(modules)
    steps += [(None, [module]) for _, module in run.parts[place:]]

    def forward(input: Any) -> Any:
        for call, modules in steps:
            input = _chain(modules, input) if call is None else call(_chain, modules, input)
        return input

    return forward


def _chain(modules: Sequence[torch.nn.Module], value: Any) -> Any:
    for module in modules:
        value = module(value)
    return value


def _checkpoint_calls(modules: Sequence[torch.nn.Module], call: Callable[..., Any]) -> None:
    """Put the checkpoint around the call of a module, its hooks inside; of several, around a chain
    of their calls where the first is called.
    """
    # A function of PyTorch's reentrant kind takes no keywords: they are bound to it.
    first, *others = modules
    inner = chained([_call_of(module) for module in modules]) if others else _call_of(first)
    seen_tuple: list[bool] = []

    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        output = call(partial(inner, **keywords), *arguments)
        seen_tuple[:] = [isinstance(output, tuple)]
        return output

    _replace_call(first, checkpointed)
    for module in others:
        _replace_call(module, passing_on(seen_tuple))


def _call_of(module: torch.nn.Module) -> Callable[..., Any]:
    """What `module(...)` runs: hooks and forward, or what they were compiled to."""
    compiled: Callable[..., Any] | None = module._compiled_call_impl
    return compiled or module._call_impl


def _replace_call(module: torch.nn.Module, call: Callable[..., Any]) -> None:
    """`module(...)` runs this one from now on; PyTorch puts a compiled call there."""
    module._compiled_call_impl = call
