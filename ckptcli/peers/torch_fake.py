"""PyTorch with shapes only: tensors that have all but their elements.

Inside, what a module makes takes no memory, and its ops no time; each op is asked what it would
return. Which op that is follows from the device, and here that is a CPU.

Invariant: PyTorch is afterwards as it was.
Source: `torch/_subclasses/fake_tensor.py`; `Module._apply` in `torch/nn/modules/module.py`, which
swaps parameters that are so made and cannot where anything refers to them weakly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


@contextmanager
def shapes_only() -> Iterator[None]:
    """Inside, tensors have no elements; a tensor from outside is taken for its shape."""
    before = torch.nn.Module._apply
    torch.nn.Module._apply = _Conversions().apply
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        torch.nn.Module._apply = before


class _Conversions:
    """What `.to(...)` and its like do: new parameters, those that are shared made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[Any, torch.nn.Parameter]] = {}

    @property
    def apply(self) -> Callable[..., torch.nn.Module]:
        def apply(
            module: torch.nn.Module, function: Callable[..., Any], recurse: bool = True
        ) -> torch.nn.Module:
            for child in module.children() if recurse else ():
                child._apply(function)
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = self._converted(parameter, function)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = function(buffer)
            return module

        return apply

    def _converted(self, parameter: Any, function: Callable[..., Any]) -> torch.nn.Parameter:
        key = (id(parameter), id(function))
        if key not in self._made:
            with torch.no_grad():
                made = torch.nn.Parameter(function(parameter), parameter.requires_grad)
            self._made[key] = ((parameter, function), made)
        return self._made[key][1]
