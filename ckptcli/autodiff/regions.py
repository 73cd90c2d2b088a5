"""Regions on the Python face: parts of a forward pass that are recomputed from their inputs.

    with x.region("block", policy=dots_saveable):
        y = block(x)

    block = checkpoint(block, policy=dots_saveable)

Source: JAX `jax.checkpoint`, `checkpoint_name`; what differs stands in `docs/policies.md`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor, method
from ckptcli.checkpoint.policies import Policy, nothing_saveable
from ckptcli.errors import DeviceError
from ckptcli.events import ValueNamed

Function = TypeVar("Function", bound=Callable[..., Any])


@method()
@contextmanager
def region(x: Tensor, name: str, policy: Policy = nothing_saveable) -> Iterator[None]:
    """Ops on the device of `x` belong to a region inside the `with` block.

    Raises:
        DeviceError: the device has no autodiff.
    """
    x.device.check_autodiff("region()")
    block = x.device.open_region(name, policy)
    try:
        yield
    finally:
        x.device.close_region(block)


def checkpoint(function: Function, policy: Policy = nothing_saveable) -> Function:
    """`function` as a region: its values are recomputed, its inputs and captured tensors held.

    The device is that of the first tensor among the arguments, containers and keywords included,
    else among the variables that the function captures.

    Raises (when called):
        DeviceError: no tensor to find the device by, or a device without autodiff.
    """

    @functools.wraps(function)
    def in_region(*args: Any, **kwargs: Any) -> Any:
        device = _device_of((args, kwargs)) or _device_of(_captured(function))
        if device is None:
            raise DeviceError(
                f"checkpoint of `{function.__name__}` finds no tensor among its arguments",
                "pass a tensor, or use `with x.region(...)`",
            )
        device.check_autodiff("checkpoint()")
        block = device.open_region(function.__name__, policy)
        try:
            return function(*args, **kwargs)
        finally:
            device.close_region(block)

    return in_region  # type: ignore[return-value]


def checkpoint_name(x: Tensor, name: str) -> Tensor:
    """`x`, known to policies under `name`.

    A name means the value itself, for every consumer: JAX's marks only what comes after it.
    """
    device = x.device
    if device.sink is not None:
        device.sink.emit(ValueNamed(x.node.id, name))
    block = device.region
    if block is not None:
        region = x.node.region
        if region is not None and region.is_asked:
            block.name_value(x.node, name, x.value)
    return x


def _device_of(value: Any) -> Device | None:
    """The device of the first tensor in nested containers."""
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, Tensor):
            return current.device
        if isinstance(current, Mapping):
            stack.extend(reversed(list(current.values())))
        elif isinstance(current, list | tuple | set | frozenset):
            stack.extend(reversed(list(current)))
    return None


def _captured(function: Callable[..., Any]) -> list[Any]:
    cells = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if cell.cell_contents is not None]
