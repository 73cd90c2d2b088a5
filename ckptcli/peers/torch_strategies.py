"""What a strategy makes of a PyTorch module: a network of its own, or the reason why there is none.

Invariant: the module that was loaded stays as it is; a strategy changes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.user_code import running
from ckptcli.peers.base import NoPeer, elsewhere
from ckptcli.peers.module_strategies import COMPILE, FRAMEWORK, NONE, OFFLOAD, OWN, ModuleStrategy
from ckptcli.peers.torch_blocks import in_another
from ckptcli.peers.torch_compiled import CompiledNetwork
from ckptcli.peers.torch_loading import another
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, UserModule
from ckptcli.peers.torch_own import turn_on_framework
from ckptcli.peers.torch_regions import checkpoint_regions, module_regions
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.peers.torch_trial import Trial, own_checkpoints_of
from ckptcli.units import count, size

_BUDGET = "budget"
"""The strategy that plans op by op, which blocks have a command of their own for."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A strategy's network.

    Attributes:
        counterpart: in words what it is, where the name does not say so.
        regions: the paths of the parts under each checkpoint.
        compile_s: what compiling took, seconds; None where nothing is compiled.
        is_loop: whether blocks that the module's own loop calls are called together.
    """

    network: ModuleNetwork
    counterpart: str = ""
    regions: Sequence[Sequence[str]] = ()
    is_loop: bool = False
    compile_s: float | None = None


def network_of(strategy: ModuleStrategy, plain: UserModule, trial: Trial, seed: int) -> Opened:
    """The network of the module under the strategy.

    Raises:
        NoPeer: there is none.
        ProgramError: another module cannot be made.
    """
    if strategy.name == NONE:
        return Opened(ModuleNetwork(plain, seed))
    if strategy.grouping is not None:
        return _checkpointed(strategy, strategy.grouping, plain, trial, seed)
    if strategy.keyword == COMPILE:
        return _compiled(strategy, plain, trial, seed)
    return _BY_KEYWORD[strategy.keyword](plain, trial, seed)


def _compiled(strategy: ModuleStrategy, plain: UserModule, trial: Trial, seed: int) -> Opened:
    network = CompiledNetwork(another(plain, seed, trial.can_share), seed, strategy.budget)
    graphs = count(network.graphs, "graph")
    own = " with the checkpoints that it makes itself" if trial.own_checkpoints else ""
    what = f"torch.compile, {graphs} of the module{own}"
    return Opened(network, what, compile_s=network.compile_s)


def _own(plain: UserModule, trial: Trial, seed: int) -> Opened:
    if not trial.own_checkpoints:
        raise NoPeer("the module makes no checkpoint itself")
    user = another(plain, seed, trial.can_share)
    return Opened(ModuleNetwork(user, seed, has_own_checkpoints=True), "the module as it is")


def _framework(plain: UserModule, trial: Trial, seed: int) -> Opened:
    user = another(plain, seed, trial.can_share)
    switch = turn_on_framework(user.module)
    if not user.module.training:
        with running(user.text, SMALLER):
            made = own_checkpoints_of(user, seed)
        if not made:
            raise NoPeer(
                f"`{switch}` of the module makes no checkpoint in evaluation mode: call its "
                "`train()`"
            )
    what = f"what `{switch}` of the module turns on"
    return Opened(ModuleNetwork(user, seed, has_own_checkpoints=True), what)


def _offload(plain: UserModule, trial: Trial, seed: int) -> Opened:
    """PyTorch's `save_on_cpu` hands on what is on a CPU already, so that nothing can be measured;
    and the account of a pass tells no devices apart.

    Raises:
        NoPeer: always; with what it would move.
    """
    del trial
    network, moved = ModuleNetwork(plain, seed), dict[int, int]()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        moved.update((storage_key(s), s.nbytes()) for s in storages(tensor))
        return tensor

    with running(plain.text, SMALLER):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = network.forward()
        network.backward(loss)
    why = "what moves between devices is in no account:"
    if plain.device.type == "cpu":
        why = "on a CPU nothing is moved to the host: it is there already; of another device"
    raise NoPeer(
        f"{why} `save_on_cpu` would hold {size(sum(moved.values()))} on the host, parameters "
        "that backward reads among it"
    )


_BY_KEYWORD: dict[str, Callable[[UserModule, Trial, int], Opened]] = {
    OWN: _own,
    FRAMEWORK: _framework,
    OFFLOAD: _offload,
}


def _checkpointed(
    strategy: ModuleStrategy, grouping: Strategy, plain: UserModule, trial: Trial, seed: int
) -> Opened:
    blocks = trial.blocks
    if strategy.keyword == _BUDGET:
        raise NoPeer(
            f"which blocks to checkpoint within it `ckpt plan --module {plain.text} --budget SIZE` "
            "says, as a strategy to run"
        )
    module_regions(blocks, grouping)  # before another module is made
    user = another(plain, seed, trial.can_share)
    regions = module_regions(in_another(blocks, user.module), grouping)
    checkpoint_regions(regions, strategy)
    return Opened(
        ModuleNetwork(user, seed),
        elsewhere(grouping, len(blocks.parts)).reading,
        tuple(region.paths for region in regions if region.policy is not None),
        any(region.run.is_loop and region.has_several_blocks for region in regions),
    )
