"""Passes of a PyTorch module with sets of its blocks under checkpoints, each in an account.

A block here is a region of `-s remat`: what goes under one checkpoint by itself. The module is
given the checkpoints of a set for one pass, so that no set needs a module of its own.

Invariant: between two passes the module's calls are what they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.memory import Memory
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.subject import gradients_of, whole_pass
from ckptcli.peers.agreement import agreement
from ckptcli.peers.base import NoPeer, Values
from ckptcli.peers.module_strategies import ModuleStrategy
from ckptcli.peers.torch_account import BACKWARD, FORWARD, RECOMPUTE, Account, Birth
from ckptcli.peers.torch_account_pass import account_pass
from ckptcli.peers.torch_memory import with_workspace
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, UserModule
from ckptcli.peers.torch_regions import ModuleRegion, checkpoint_regions, module_regions
from ckptcli.peers.torch_trial import Trial, restore_buffers, why_not_again
from ckptcli.planning.blocks.sets import BlockSet, NoSuchSet, SetPass, Stage

FORWARDS = 5
"""So often a forward is timed, behind one that is not."""


class BlockSets:
    """The blocks of a module that was tried, and passes with some of them under checkpoints.

    Attributes:
        regions: of `remat`, one a block.
        base_bytes: what is there before a pass, as the last one had it: parameters, buffers, input
            and the optimizer's state.
        optimizer_bytes: the last of these.
    """

    def __init__(self, user: UserModule, trial: Trial, seed: int, has_values: bool) -> None:
        """Without values there is no allocator to ask.

        Raises:
            NoPeer: the module has no block to checkpoint.
        """
        self._user, self._blocks, self._has_values = user, trial.blocks, has_values
        self._network = ModuleNetwork(user, seed)
        remat = parse_strategy("remat")
        regions = module_regions(self._blocks, remat)
        self.regions = [region for region in regions if region.policy is not None]
        self._layers = [self._layers_of(region) for region in self.regions]
        self._block_of = {
            path: place for place, region in enumerate(self.regions) for path in region.paths
        }
        self.base_bytes = self.optimizer_bytes = 0

    def _layers_of(self, region: ModuleRegion) -> list[int]:
        return [i for i, path in enumerate(self._blocks.paths) if path in region.paths]

    def strategy(self, chosen: BlockSet) -> str:
        """What `-s` takes for the set."""
        layers = sorted(layer for block in chosen for layer in self._layers[block])
        return f"remat:only={_ranges(layers)}" if layers else "none"

    def chosen_regions(self, chosen: BlockSet) -> list[ModuleRegion]:
        """The regions of the set."""
        if not chosen:
            return []
        regions = module_regions(self._blocks, parse_strategy(self.strategy(chosen)))
        return [region for region in regions if region.policy is not None]

    def measured(self, chosen: BlockSet) -> SetPass:
        """One pass in an account.

        Raises:
            NoSuchSet: the module fails with these checkpoints.
            ProgramError: it fails without any.
        """
        try:
            with _restored(self._user.module), running(self._user.text, SMALLER):
                self._checkpoint(chosen)
                return self._pass(chosen)
        except NoPeer as reason:
            raise NoSuchSet(str(reason)) from reason
        except (ProgramError, OutputError) as error:
            if not chosen:
                raise
            raise NoSuchSet(why_not_again(error, self._user)) from error

    def keeps_gradients(self, chosen: BlockSet) -> bool:
        """Whether loss and gradients are those without checkpoints, from the same buffers."""
        expected, found = (self._values(each) for each in (frozenset[int](), chosen))
        network = self._network
        return agreement(expected, found, network.dtype, network.tolerance).agrees

    def _values(self, chosen: BlockSet) -> Values:
        module = self._user.module
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        with _restored(module), running(self._user.text, SMALLER):
            self._checkpoint(chosen)
            values = self._network.values(gradients_of(self._network))
        restore_buffers(module, buffers)
        return values

    def _checkpoint(self, chosen: BlockSet) -> None:
        if chosen:
            text = self.strategy(chosen)
            strategy = ModuleStrategy(text, parse_strategy(text))
            assert strategy.grouping is not None
            checkpoint_regions(module_regions(self._blocks, strategy.grouping), strategy)

    def _pass(self, chosen: BlockSet) -> SetPass:
        account, memory = _accounted(self._network)
        self.optimizer_bytes = memory.optimizer_bytes or 0
        self.base_bytes = base_bytes = (memory.params_input_bytes or 0) + self.optimizer_bytes
        workspace_bytes = 0
        if self._has_values:
            workspace_bytes = with_workspace(memory, self._network).workspace_bytes or 0
        highest = account.highest
        stages = _Stages(account, self._block_of)
        return SetPass(
            chosen,
            (memory.ledger_peak_bytes or 0) - base_bytes + workspace_bytes,
            memory.saved_bytes,
            list(stages.above(base_bytes)),
            stages.held_bytes,
            {} if highest is None else account.bytes_by_why(highest.born),
            "" if highest is None else highest.phase,
            "" if highest is None else highest.path,
            workspace_bytes,
        )

    def flops(self) -> tuple[list[int], int]:
        """Of each block what PyTorch's counter counts in its forward, and in the whole."""
        counter = FlopCounterMode(display=False)
        with counter:
            of_blocks, whole = self._watched(counter.get_total_flops)
        return [int(of) for of in of_blocks], int(whole)

    def seconds(self) -> tuple[list[float], float]:
        """Of each block how long its forward takes, and the whole; medians."""
        self._watched(self._now_s)
        runs = [self._watched(self._now_s) for _ in range(FORWARDS)]
        of_blocks = [median(times) for times in zip(*(times for times, _ in runs))]
        return of_blocks, median(whole for _, whole in runs)

    def _now_s(self) -> float:
        """The clock, once the device has done what it was given."""
        if self._user.device.type == "cuda":
            torch.cuda.synchronize(self._user.device)
        return perf_counter()

    def _watched(self, read: Any) -> tuple[list[float], float]:
        """How far a meter moves while each block runs in a forward, and over all of it."""
        moved, entered = [0.0] * len(self.regions), [0.0] * len(self.regions)

        def enter(block: int) -> Any:
            def hook(part: Any, given: Any) -> None:
                entered[block] = read()

            return hook

        def leave(block: int) -> Any:
            def hook(part: Any, given: Any, output: Any) -> None:
                moved[block] += read() - entered[block]

            return hook

        handles = []
        for block, region in enumerate(self.regions):
            for _, part in region.parts:
                if not isinstance(part, torch.jit.ScriptModule):  # these take no hooks
                    handles.append(part.register_forward_pre_hook(enter(block)))
                    handles.append(part.register_forward_hook(leave(block)))
        try:
            with running(self._user.text, SMALLER):
                begun = read()
                loss = self._network.forward()
                whole = read() - begun
        finally:
            for handle in handles:
                handle.remove()
        del loss
        return moved, whole


def network_pass(network: ModuleNetwork) -> Memory:
    """What a pass takes, behind another one, which is not counted."""
    whole_pass(network)
    return _accounted(network)[1]


def _accounted(network: ModuleNetwork) -> tuple[Account, Memory]:
    with collector_off(), Account() as account, account.following(network.user.module):
        return account, account_pass(account, network)


@contextmanager
def _restored(module: torch.nn.Module) -> Iterator[None]:
    """Afterwards every part is called as before, whatever was put in place of its call."""
    before = [(m, m._compiled_call_impl, vars(m).get("forward")) for m in module.modules()]
    try:
        yield
    finally:
        for part, call, forward in before:
            part._compiled_call_impl = call
            if vars(part).get("forward") is not forward:
                del part.forward


class _Stages:
    """The stages of a pass, from the births and deaths of its storages.

    `held_bytes` has of each block the most of its saved tensors that is there at once.
    """

    def __init__(self, account: Account, block_of: dict[str, int]) -> None:
        self._account, self._block_of = account, block_of
        self._saved = {id(b): self._block(b) for b in account.history if self._is_saved(b)}
        self._events = sorted(_events(account.history), key=lambda event: event[0])
        self.held_bytes = self._most_held()

    def _most_held(self) -> dict[int, int]:
        """Of each block the most of its saved tensors that is there at once."""
        held, most = Counter[int](), Counter[int]()
        for _, birth, is_born in self._events:
            block = self._saved.get(id(birth))
            if block is not None:
                held[block] += birth.size_bytes if is_born else -birth.size_bytes
                most[block] = max(most[block], held[block])
        return most

    def above(self, base_bytes: int) -> Iterator[Stage]:
        """The stages, bytes above what is there before the pass."""
        live_bytes, held = 0, Counter[int]()
        found: dict[tuple[str, int | None, BlockSet], int] = {}
        for _, birth, is_born in self._events:
            moved = birth.size_bytes if is_born else -birth.size_bytes
            live_bytes += moved
            block = self._saved.get(id(birth))
            if block is not None:
                held[block] += moved
            if is_born and birth.op:  # made by the pass
                there = frozenset(b for b, most in self.held_bytes.items() if held[b] == most)
                key = (_phase(birth), self._block(birth), there)
                found[key] = max(found.get(key, 0), live_bytes - base_bytes)
        for (phase, current, there), peak_bytes in found.items():
            yield Stage(phase, current, peak_bytes, there)

    def _is_saved(self, birth: Birth) -> bool:
        return birth.phase == FORWARD and self._account.why_of(birth) == "saved"

    def _block(self, birth: Birth) -> int | None:
        """The block that the storage was made in."""
        path = birth.path
        while path:
            if path in self._block_of:
                return self._block_of[path]
            path = path.rpartition(".")[0]
        return self._block_of.get("")


def _phase(birth: Birth) -> str:
    return BACKWARD if birth.phase == RECOMPUTE else birth.phase


def _events(history: Sequence[Birth]) -> Iterator[tuple[int, Birth, bool]]:
    for birth in history:
        yield birth.born, birth, True
        if birth.died is not None:
            yield birth.died, birth, False


def _ranges(layers: Sequence[int]) -> str:
    """`0..2,5`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ",".join(str(a) if a == b else f"{a}..{b}" for a, b in runs)
