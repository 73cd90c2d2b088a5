"""Before a PyTorch module of the user's own is measured: does it run, and do the same each time?

Invariant: the module's buffers are afterwards what they were.
"""

from __future__ import annotations

import torch

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import ProgramError
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Values
from ckptcli.peers.torch_blocks import Blocks, as_called, blocks_of
from ckptcli.peers.torch_loops import following_loops
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, UserModule
from ckptcli.peers.torch_places import Places

IN_PLACE = "modified by an inplace operation"


def tried(user: UserModule, seed: int, wanted: str | None = None) -> Blocks:
    """What checkpoints go around, after two passes from the same random state; `wanted` as in
    `blocks_of`.

    Raises:
        UsageError: no part of the module is called as `wanted` says.
        ProgramError: the module fails, or does something else in the second pass.
    """
    blocks = blocks_of(user.module, wanted)
    network = ModuleNetwork(user, seed)
    places = Places()
    buffers = {name: buffer.clone() for name, buffer in user.module.named_buffers()}
    passes = []
    with running(user.text, SMALLER, places.text), places.following(user.module):
        for _ in range(2):
            with following_loops(blocks) as loops:
                state = network.forward()
            passes.append(network.values(network.backward(state)))
            _restore(user.module, buffers)
    _check_same(user, passes[0], passes[1], network.dtype)
    return as_called(blocks, places.called, loops)


def _restore(module: torch.nn.Module, buffers: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])


def _check_same(user: UserModule, first: Values, again: Values, dtype: str) -> None:
    known = agreement(first, again, dtype, TOLERANCES[dtype])
    if known.agrees:
        return
    apart = f"the loss is {first.loss!r} in one pass and {again.loss!r} in the next"
    if known.loss_relative <= known.tolerance:
        apart = f"a gradient of one pass and the next is apart by {known.gradient_relative:.2g}"
    raise ProgramError(
        f"`{user.text}` does something else each time: {apart}",
        "draw random numbers with torch, whose state is set before each pass, not with `random` "
        "or `numpy.random`, and keep nothing from pass to pass",
    )


def why_not_again(error: ProgramError) -> str:
    """Why a module that runs without checkpoints fails with them, and what to do."""
    if IN_PLACE not in str(error.__cause__):
        return f"it fails when it is computed again: {error}"
    return "an in-place op overwrites what a checkpoint computes again from; use inplace=False"
