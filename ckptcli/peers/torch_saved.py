"""What is alive after forward of a PyTorch module: module, op, line, steps, bytes by storage.

The ledger sees each storage as it is made, and says which are left: the account of `ckpt run`, made
in the same way. Which steps of the backward pass hold them PyTorch's graph tells, as far as it was
saved there, and what holds the rest is looked for (`torch_holders`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.peers.torch_account import Birth
from ckptcli.peers.torch_arguments import Arguments
from ckptcli.peers.torch_holders import HolderAccount
from ckptcli.peers.torch_ledger import alive_after, counting
from ckptcli.peers.torch_module import ModuleNetwork


def saved_by_module(network: ModuleNetwork) -> list[ModuleSaved]:
    """What is held after one forward pass, largest first; one whole pass is run before.

    Parameters, buffers, input and loss are left out; views count with their storage.
    """
    module = network.user.module
    kinds = {path: type(part).__name__ for path, part in module.named_modules()}
    arguments = Arguments()
    account = partial(HolderAccount, network, arguments)
    with (
        counting(account, lambda: network.backward(network.forward())) as ledger,
        arguments.watching(),
        ledger.following(module),
    ):
        loss, alive = alive_after(ledger, network.forward, network.user.own_tensors())
        ledger.root = loss.grad_fn
        ledger.look()
    places = {id(birth): i for i, birth in enumerate(ledger.history)}
    found = []
    for key in alive:
        birth = ledger.births[key]
        kind = kinds.get(birth.path, kinds[""])
        found.append(saved_storage(birth, kind, ledger.holders.of[places[id(birth)]]))
    return sorted(found, key=lambda saved: -saved.bytes)


def saved_storage(birth: Birth, kind: str, held_by: Sequence[str]) -> ModuleSaved:
    """A storage that is alive after forward; `kind` is the class of the module that made it."""
    source, library = birth.lines
    return ModuleSaved(
        module=f"{birth.path} {kind}",
        ops=held_by,
        shape=birth.shape,
        dtype=birth.dtype,
        bytes=birth.size_bytes,
        path=birth.path,
        kind=kind,
        op=birth.op,
        source=source,
        library=library,
    )
