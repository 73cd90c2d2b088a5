"""The memory of a PyTorch module's pass: its account, what the peak consists of, who holds it.

The peak in two figures: the ledger's, which counts tensors, and the allocator's, which has what
kernels take for themselves on top.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ckptcli.measure.memory import Memory, PeakLive
from ckptcli.measure.rounds import collector_off
from ckptcli.peers.torch_account import FORWARD, Account
from ckptcli.peers.torch_allocator import allocator_peaks
from ckptcli.peers.torch_arguments import ARGUMENT, Arguments
from ckptcli.peers.torch_holders import HolderAccount
from ckptcli.peers.torch_ledger import counted, counting
from ckptcli.peers.torch_module import ModuleNetwork


def module_memory(network: ModuleNetwork) -> Memory:
    """What one pass of a module takes, and what was live at its peak; some more are run."""
    with (
        counting(Account, network.forward, network.backward) as account,
        account.following(network.user.module),
    ):
        memory = _counted(account, network)
    peaks, before_bytes = allocator_peaks(network), memory.params_input_bytes
    if peaks is not None and before_bytes is not None:
        memory = replace(
            memory,
            traced_peak_forward_bytes=before_bytes + peaks.forward_bytes,
            traced_peak_backward_bytes=before_bytes + peaks.backward_bytes,
        )
    return replace(memory, peak_live=_with_holders(account, network))


def _counted(account: Account, network: ModuleNetwork) -> Memory:
    user = network.user
    account.enter(user.module.parameters(), "parameter")
    account.enter(user.module.buffers(), "buffer")
    account.enter(user.input_tensors(), "input")

    def forward() -> torch.Tensor:
        loss = network.forward()
        account.are([loss], "output")
        if isinstance(account, HolderAccount):
            account.root = loss.grad_fn
        return loss

    def backward(loss: torch.Tensor) -> Any:
        result = network.backward(loss)
        account.are(result[1][: len(user.parameters())], "gradient of a parameter")
        return result

    return counted(account, forward, backward, user.own_tensors()).memory


def _with_holders(account: Account, network: ModuleNetwork) -> PeakLive | None:
    """What was live at the peak; of one in backward, who held it."""
    highest = account.highest
    if highest is None or highest.phase == FORWARD:
        return account.live_at_peak()
    arguments = Arguments()
    with (
        collector_off(),
        arguments.watching(),
        HolderAccount(network, arguments, highest.born) as again,
        again.following(network.user.module),
    ):
        _counted(again, network)
    sizes = [birth.size_bytes for birth in account.history[: len(again.holders.sizes)]]
    if again.holders.sizes != sizes:  # another pass than the first: a cache that fills
        return account.live_at_peak()
    holders = again.holders.largest
    first = next((holder for holder in holders if holder.role == ARGUMENT), None)
    if first is not None and network.user.has_cache:
        first.more_bytes = account.highest_bytes - _peak_without_cache(network)
    return account.live_at_peak(again.holders.of, holders)


def _peak_without_cache(network: ModuleNetwork) -> int:
    """The ledger's peak of the same pass where no configuration has a cache, bytes."""
    configs = network.user.caching_configs()
    for config in configs:
        config.use_cache = False
    try:
        with collector_off(), Account() as account:
            _counted(account, network)
    finally:
        for config in configs:
            config.use_cache = True
    return int(account.highest_bytes)
