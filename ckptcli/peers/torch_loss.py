"""The loss of a PyTorch module's output: the user's, or one that is taken where there is none.

An output with a `loss` is that alone, as a model gives it that was given its labels. A scalar is
the loss itself. Anything else is weighted with fixed random numbers and summed: the plain sum of a
normalised output is a constant, whose gradient vanishes.

Invariant: taking the loss holds nothing for backward.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ckptcli.checkpoint.user_code import refused_arguments
from ckptcli.errors import OutputError
from ckptcli.peers.module_step import Step

_SEED = 20_000
_CHUNK = 1 << 16
"""Elements that are weighted at once: what weighting needs stays small beside the output."""

_MOST_BY_SHAPE = 1 << 10
"""Chunks that are weighted where there are shapes alone: all of an output that is held against a
real run op by op (`profiling/fake_profile.py`), and no more than a second for a larger one.
"""

_WHAT_TO_RETURN = "have forward return tensors in tuples, lists, mappings or dataclasses"


def loss_and_terms(output: Any, text: str) -> tuple[torch.Tensor, int]:
    """The loss of what `text`'s module gives, and of how many tensors it is made.

    Raises:
        OutputError: there is no tensor that a gradient flows to, or an object whose tensors cannot
            be told in an order.
    """
    own = _own_loss(output)
    if own is not None:
        return own, 1
    found = [tensor for tensor in tensors_in(output, text) if _can_be_differentiated(tensor)]
    if not found:
        raise OutputError(
            f"no output of the module of `{text}` depends on a parameter",
            "have forward return a tensor that does; `torch.no_grad` and `detach` cut it off",
        )
    if len(found) == 1 and found[0].numel() == 1 and not found[0].is_complex():
        return found[0].reshape(()), 1
    loss: torch.Tensor = _Weighted.apply(*found)
    return loss, len(found)


def users_loss(step: Step, output: Any, text: str) -> torch.Tensor:
    """What `loss(output, batch)` of the step gives.

    Raises:
        OutputError: no tensor of one element that a gradient flows to.
    """
    loss = _called(step, output, text)
    is_one = isinstance(loss, torch.Tensor) and loss.numel() == 1 and not loss.is_complex()
    if is_one and loss.requires_grad:
        found: torch.Tensor = loss.reshape(())
        return found
    raise OutputError(
        f"the loss of `{text}` is {_described(loss)}",
        "have loss(output, batch) return a real tensor of one element that depends on a parameter",
    )


def _called(step: Step, output: Any, text: str) -> Any:
    """What the loss gives; its signature is read only once it fails, which no time contains."""
    assert step.loss is not None
    try:
        return step.loss(output, step.given)
    except TypeError as error:
        own = step.loss.forward if isinstance(step.loss, torch.nn.Module) else step.loss
        refused = refused_arguments(own, output, step.given)
        if refused is None:
            raise
        raise OutputError(
            f"the loss of `{text}` is called as loss(output, batch), which it does not take: "
            f"{refused}",
            "write `lambda output, batch: ...` around it",
        ) from error


def _described(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"of type {type(value).__name__}"
    kind = f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {list(value.shape)}"
    return kind if value.requires_grad else f"{kind} that no gradient flows to"


def _own_loss(output: Any) -> torch.Tensor | None:
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    is_loss = isinstance(loss, torch.Tensor) and loss.requires_grad and loss.numel() == 1
    return loss.reshape(()) if is_loss and loss is not None else None


def _can_be_differentiated(tensor: torch.Tensor) -> bool:
    return bool(tensor.requires_grad)


def tensors_in(output: Any, text: str) -> Iterator[torch.Tensor]:
    """Every tensor of an output, once, in order: in containers and in attributes of objects.

    Raises:
        OutputError: a generator, which can be read but once, or a set, which has no order.
    """
    seen: set[int] = set()
    waiting = [output]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            yield value
            continue
        waiting += reversed(list(_inside(value, text)))


def _inside(value: Any, text: str) -> Iterator[Any]:
    if isinstance(value, Iterator | Set) and not isinstance(value, Mapping):
        raise OutputError(
            f"an output of the module of `{text}` is in an object of type "
            f"{type(value).__name__}, whose tensors have no fixed order",
            _WHAT_TO_RETURN,
        )
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in fields(value))
    elif not isinstance(value, type | types.ModuleType | types.FunctionType | torch.nn.Module):
        yield from getattr(value, "__dict__", {}).values()


class _Weighted(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not checked
    """The sum of all elements, each times a random number; of complex ones the real part."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.likes = [(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors]
        wide = torch.float64 if tensors[0].dtype in _DOUBLE else torch.float32
        total = torch.zeros((), dtype=wide, device=tensors[0].device)
        for tensor, like in zip(tensors, ctx.likes):
            for chunk, weights in zip(_chunks(tensor.reshape(-1)), _weights(*like)):
                product = torch.linalg.vecdot(weights, chunk) if chunk.numel() else total * 0
                total = total + (product.real if product.is_complex() else product).to(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        found = []
        for shape, dtype, device in ctx.likes:
            whole = torch.empty(shape, dtype=dtype, device=device)
            for chunk, weights in zip(_chunks(whole.view(-1)), _weights(shape, dtype, device)):
                chunk.copy_(weights * gradient.to(dtype))
            found.append(whole)
        return tuple(found)


_DOUBLE = (torch.float64, torch.complex128)


def _chunks(flat: torch.Tensor) -> Iterator[torch.Tensor]:
    """Views of a vector; of an empty one, itself."""
    for start in range(0, max(flat.numel(), 1), _CHUNK):
        yield flat[start : start + _CHUNK]


def _weights(shape: Any, dtype: torch.dtype, device: Any) -> Iterator[torch.Tensor]:
    """The fixed random numbers of a tensor, chunk by chunk; where it has a shape alone, of the
    first chunks, which all others are like.
    """
    generator = torch.Generator().manual_seed(_SEED)
    left = shape.numel()
    least = max(0, left - _MOST_BY_SHAPE * _CHUNK)
    while left > 0 or left == shape.numel() == 0:
        size = min(left, _CHUNK)
        drawn = torch.randn(size, generator=generator, dtype=_drawn(dtype))
        yield drawn.to(device, dtype)
        left -= max(size, 1)
        if isinstance(drawn, FakeTensor) and left <= least:
            return


def _drawn(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128 if dtype is torch.complex128 else torch.complex64
    return torch.float64 if dtype is torch.float64 else torch.float32
