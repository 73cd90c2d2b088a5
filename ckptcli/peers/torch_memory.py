"""The memory of a PyTorch module's pass: its account, what the peak consists of, who holds it.

The peak in two figures: the ledger's, which counts tensors, and the allocator's, which has what
kernels take for themselves on top.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ckptcli.measure.memory import Memory, PeakLive
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.row import Cost
from ckptcli.measure.subject import whole_pass
from ckptcli.measure.trace import Trace
from ckptcli.peers.torch_account import BACKWARD, FORWARD, RECOMPUTE, Account
from ckptcli.peers.torch_account_pass import account_pass
from ckptcli.peers.torch_allocator import allocator_rises
from ckptcli.peers.torch_arguments import ARGUMENT, Arguments
from ckptcli.peers.torch_compiled import CompiledNetwork
from ckptcli.peers.torch_holders import HolderAccount
from ckptcli.peers.torch_ledger import counting
from ckptcli.peers.torch_module import ModuleNetwork
from ckptcli.peers.torch_timeline import trace_of


@dataclass(frozen=True, slots=True)
class WatchedPass:
    """What one pass of a module shows; None where nobody watches.

    Attributes:
        memory: what it takes, and what was live at its peak.
        trace: the pass as it went.
        recomputed_by_op: how often each op ran again, as in `aten.NAME`.
        cost: the work of forward, and of what ran again.
    """

    memory: Memory
    trace: Trace | None = None
    recomputed_by_op: dict[str, int] | None = None
    cost: Cost | None = None


def module_pass(network: ModuleNetwork, has_elements: bool = True) -> WatchedPass:
    """What one pass of a module shows; some more are run. Without elements there is no allocator to
    ask, and of one that is compiled nobody watches the tensors.
    """
    if isinstance(network, CompiledNetwork):
        return WatchedPass(network.memory())
    if not has_elements:
        if network.has_step:
            whole_pass(network)  # an optimizer makes its state in its first step
        with collector_off(), Account() as account, account.following(network.user.module):
            memory = account_pass(account, network)
        return _watched(memory, account, network)
    with (
        counting(Account, lambda: whole_pass(network)) as account,
        account.following(network.user.module),
    ):
        memory = account_pass(account, network)
    return _watched(with_workspace(memory, network), account, network)


def _watched(memory: Memory, account: Account, network: ModuleNetwork) -> WatchedPass:
    work = account.work
    cost = Cost(
        forward_flops=work.flops[FORWARD],
        forward_moved_bytes=work.moved_bytes[FORWARD],
        recomputed_flops=work.flops[RECOMPUTE],
        recomputed_moved_bytes=work.moved_bytes[RECOMPUTE],
    )
    found = replace(memory, peak_live=_with_holders(account, network))
    return WatchedPass(found, trace_of(account.history), work.by_op(RECOMPUTE), cost)


def bytes_by_op(network: ModuleNetwork) -> Counter[str]:
    """What the ops of one pass return, in storages that were not there before; bytes."""
    with (
        counting(Account, lambda: whole_pass(network)) as account,
        account.following(network.user.module),
    ):
        account_pass(account, network)
    found: Counter[str] = Counter()
    for birth in account.history:
        found[birth.op] += birth.size_bytes
    return found


def with_workspace(memory: Memory, network: ModuleNetwork) -> Memory:
    """The same with what the allocator says of another pass, where this PyTorch tells."""
    rises = allocator_rises(network)
    if rises is None or memory.params_input_bytes is None:
        return memory
    before_bytes = memory.params_input_bytes + (memory.optimizer_bytes or 0)
    step = rises.step_bytes
    return replace(
        memory,
        traced_peak_forward_bytes=before_bytes + rises.forward_bytes,
        traced_peak_backward_bytes=before_bytes + rises.backward_bytes,
        traced_peak_step_bytes=None if step is None else before_bytes + step,
        allocator_forward=rises.forward,
        allocator_backward=rises.backward,
    )


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
