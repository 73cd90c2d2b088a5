"""A step with the input and in the dtype that a request names.

Floats are drawn evenly from 0 to 1, whole numbers below the number of rows of the module's smallest
`nn.Embedding`, or 2 without one, so that they are indices of every table.

Invariant: the same seed draws the same input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ckptcli.peers.module_input import INTEGERS, DrawnInput
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_step import Step


def as_asked(step: Step, request: ModuleRequest, seed: int) -> Step:
    """The step as the request has it, its module converted in place."""
    if request.dtype is not None:
        step = _in_dtype(step, getattr(torch, request.dtype))
    if not request.inputs:
        return step
    tables = [part for part in step.module.modules() if isinstance(part, torch.nn.Embedding)]
    below = min((table.num_embeddings for table in tables), default=2)
    generator = torch.Generator().manual_seed(seed)
    plain = request.dtype or "float32"
    drawn = [_one(wanted, wanted.dtype or plain, below, generator) for wanted in request.inputs]
    return replace(step, args=tuple(drawn), kwargs={})


def _in_dtype(step: Step, dtype: torch.dtype) -> Step:
    def converted(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        return leaf.detach().to(dtype).requires_grad_(leaf.requires_grad)

    step.module.to(dtype)
    given = step.args, dict(step.kwargs), step.batch
    args, kwargs, batch = tree_map(converted, given)
    return replace(step, args=args, kwargs=kwargs, batch=batch)


def _one(wanted: DrawnInput, name: str, below: int, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, name)
    if name == "bool":
        return torch.rand(wanted.shape, generator=generator) < 0.5
    if name in INTEGERS:
        most = min(below, torch.iinfo(dtype).max)
        return torch.randint(0, most, wanted.shape, generator=generator, dtype=dtype)
    return torch.rand(wanted.shape, generator=generator, dtype=dtype)
