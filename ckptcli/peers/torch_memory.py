"""The memory of a PyTorch module's pass: its account, what the peak consists of, who holds it."""

from __future__ import annotations

from dataclasses import replace

from ckptcli.measure.memory import Memory, PeakLive
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.subject import whole_pass
from ckptcli.peers.torch_account import BACKWARD, RECOMPUTE, Account
from ckptcli.peers.torch_account_pass import account_pass
from ckptcli.peers.torch_arguments import ARGUMENT, Arguments
from ckptcli.peers.torch_holders import HolderAccount
from ckptcli.peers.torch_ledger import counting
from ckptcli.peers.torch_module import ModuleNetwork


def module_memory(network: ModuleNetwork) -> Memory:
    """What one pass of a module takes, and what was live at its peak; two more are run."""
    with (
        counting(Account, lambda: whole_pass(network)) as account,
        account.following(network.user.module),
    ):
        memory = account_pass(account, network)
    return replace(memory, peak_live=_with_holders(account, network))


def _with_holders(account: Account, network: ModuleNetwork) -> PeakLive | None:
    """What was live at the peak; of one in backward, who held it."""
    highest = account.highest
    if highest is None or highest.phase not in (RECOMPUTE, BACKWARD):
        return account.live_at_peak()
    arguments = Arguments()
    with (
        collector_off(),
        arguments.watching(),
        HolderAccount(network, arguments, highest.born) as again,
        again.following(network.user.module),
    ):
        account_pass(again, network)
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
            account_pass(account, network)
    finally:
        for config in configs:
            config.use_cache = True
    return int(account.highest_bytes)
