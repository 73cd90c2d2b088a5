"""Before a PyTorch module of the user's own is measured: does it run, and do the same each time?

Invariant: the module's buffers are afterwards what they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ckptcli import units
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.peers.agreement import TOLERANCES, agreement
from ckptcli.peers.base import Values
from ckptcli.peers.module_strategies import NONE
from ckptcli.peers.torch_bits import digest
from ckptcli.peers.torch_blocks import Blocks, as_called, blocks_of
from ckptcli.peers.torch_loops import following_loops
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork, UserModule
from ckptcli.peers.torch_own import counted_checkpoints
from ckptcli.peers.torch_places import Places

SHOWN = 5
"""Names in one sentence."""

_CACHED = (
    "config.use_cache is on: a cache that is an argument of a checkpointed block is kept for "
    "it, and grows once more when the block is computed again; turn it off, as a framework's own "
    "switch does"
)

_EVALUATING = (
    "the module is in evaluation mode: no dropout, batch normalisation by its stored statistics, "
    "no checkpoint of a framework that asks for training; call its `train()` to measure a training"
)

_GIVES_NONE = (
    "no gradient where no input of theirs requires one, as behind a frozen embedding: pass "
    "use_reentrant=False, or have the first input require a gradient "
    "(`enable_input_require_grads()` of transformers)"
)

_REENTRANT = f"its reentrant checkpoints give {_GIVES_NONE}"

_NO_GRADIENT = (
    "no gradient flows to its output: PyTorch's reentrant checkpoint needs an input that requires "
    "one, which the first block does not get"
)

IN_PLACE = "modified by an inplace operation"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a module does.

    Attributes:
        blocks: what checkpoints go around.
        own_checkpoints: the kind of each checkpoint that the module makes itself in one pass.
        never_called: blocks that the pass does not call, by path.
        has_cache: whether a configuration of it has `use_cache` on, and it follows that.
        without_gradient: parameters, by path, and inputs that the loss does not depend on.
        can_share: whether no pass changes a parameter, so that all strategies may have the same.
        is_training: whether the module is in training mode.
        output_bytes: what is held of the output until backward is done, where the step says so.
    """

    blocks: Blocks
    own_checkpoints: Sequence[str]
    never_called: Sequence[str]
    without_gradient: Sequence[str]
    has_cache: bool
    is_training: bool
    output_bytes: int = 0
    can_share: bool = True

    def notes(self) -> Iterator[str]:
        """What a reader of figures has to know, in sentences."""
        if self.own_checkpoints:
            kinds = Counter(self.own_checkpoints)
            made = " and ".join(f"{number} {kind}" for kind, number in kinds.items())
            yield (
                f"the module checkpoints itself ({made} in a pass): `own` is the module as it is, "
                "every other row has these off"
            )
        if not self.is_training:
            yield _EVALUATING
        if self.has_cache:
            yield f"the module's {_CACHED}"
        if self.never_called:
            yield f"never called, so that no checkpoint goes around it: {some(self.never_called)}"
        if self.output_bytes:
            yield (
                f"the output, {units.size(self.output_bytes)}, is held until the backward pass is "
                "done (keep_output): it is in the account of every row"
            )
        if self.without_gradient:
            yield f"without a gradient: {some(self.without_gradient)}"


def some(names: Sequence[str]) -> str:
    """The first of many names, each in quotes."""
    return units.some([f"`{name}`" for name in names], SHOWN)


def tried(user: UserModule, seed: int, wanted: str | None = None, has_values: bool = True) -> Trial:
    """Run the module with what it checkpoints itself, and twice without, each time from the same
    random state; `wanted` as in `blocks_of`. Without values nothing of both passes is compared.

    Raises:
        UsageError: no part of the module is called as `wanted` says.
        ProgramError: the module fails, or does something else in the second pass.
    """
    user = replace(user, step=replace(user.step, accumulate=1))
    blocks, network, places = blocks_of(user.module, wanted), ModuleNetwork(user, seed), Places()
    parameters = _digests(user) if has_values else []
    versions = _versions(user)
    buffers = {name: buffer.clone() for name, buffer in user.module.named_buffers()}
    passes: list[Values] = []
    found: list[Any] = []
    with running(user.text, SMALLER, places.text), places.following(user.module):
        own_checkpoints = own_checkpoints_of(user, seed)
        restore_buffers(user.module, buffers)
        for _ in range(2):
            with following_loops(blocks) as loops:
                state = network.forward()
            output_bytes = network.output_bytes
            result = network.backward(state)
            if has_values:
                passes.append(network.values(result))
            found[:] = result[1]
            restore_buffers(user.module, buffers)
        can_share = has_values and parameters == _digests(user)
        if user.optimizer is not None:
            network.step(result)
            network.put_back()
    if has_values:
        overwritten = [f"input {i}" for i, v in enumerate(_versions(user)) if v != versions[i]]
        _check_same(user, passes[0], passes[1], network.dtype, overwritten)
    return Trial(
        as_called(blocks, places.called, loops),
        own_checkpoints,
        [path for path, module in blocks.parts if id(module) not in places.called],
        without_gradient(user.parameter_names(), found),
        user.has_cache,
        user.module.training,
        output_bytes,
        can_share,
    )


def own_checkpoints_of(user: UserModule, seed: int) -> Sequence[str]:
    """The kind of each checkpoint that the module makes itself in a forward pass.

    Raises:
        OutputError: no gradient flows to its loss; where its own checkpoints may be why, says so.
    """
    with counted_checkpoints() as made:
        try:
            ModuleNetwork(user, seed, has_own_checkpoints=True).forward()
        except OutputError as error:
            if "reentrant" not in made:
                raise
            raise OutputError(error.message, _REENTRANT) from error
    return made


def _digests(user: UserModule) -> list[bytes]:
    return [digest(parameter) for _, parameter in user.named_parameters()]


def restore_buffers(module: torch.nn.Module, buffers: Mapping[str, torch.Tensor]) -> None:
    """Give the buffers the values that they had, where they still have these shapes."""
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])


def _versions(user: UserModule) -> list[int]:
    """How often each tensor of the input was written to."""
    return [tensor._version for tensor in user.input_tensors()]


def _check_same(
    user: UserModule, first: Values, again: Values, dtype: str, overwritten: Sequence[str]
) -> None:
    known = agreement(first, again, dtype, TOLERANCES[dtype])
    if known.agrees:
        return
    apart = f"the loss is {first.loss!r} in one pass and {again.loss!r} in the next"
    if known.loss_relative <= known.tolerance:
        apart = f"a gradient of one pass and the next is apart by {known.gradient_relative:.2g}"
    if overwritten:
        raise ProgramError(
            f"`{user.text}` does something else each time: a pass overwrites {some(overwritten)}, "
            f"and {apart}",
            "have forward compute on a new tensor, as `x = x * 2` for `x *= 2`, or on `x.clone()`",
        )
    raise ProgramError(
        f"`{user.text}` does something else each time: {apart}",
        "draw random numbers with torch, `random` or `numpy.random`, whose states are set before "
        "each pass, not with a Generator of your own, and keep nothing from pass to pass",
    )


def without_gradient(names: Sequence[str], gradients: Sequence[object]) -> list[str]:
    """Those of the names whose gradient is not there."""
    return [name for name, gradient in zip(names, gradients) if gradient is None]


def lost_gradients(found: Sequence[str], expected: Sequence[str]) -> str | None:
    """What to say of those `found` without a gradient that are not so without checkpoints."""
    lost = [name for name in found if name not in expected]
    if not lost:
        return None
    return (
        f"no gradient reaches {some(lost)}, which `{NONE}` has: reentrant checkpoints give what is "
        f"inside of them {_GIVES_NONE}"
    )


def why_not_again(error: ProgramError | OutputError, user: UserModule) -> str:
    """Why a module that runs without checkpoints fails with them, and what to do."""
    if isinstance(error, OutputError):
        return _NO_GRADIENT
    if IN_PLACE in str(error.__cause__):
        return (
            "an in-place op overwrites what a checkpoint computes again from; use inplace=False, "
            "and x + y for x += y"
        )
    cached = f"; its {_CACHED}" if user.has_cache else ""
    return f"it fails when it is computed again: {error}{cached}"
