"""What a step is given, anew for each pass.

In training each step has a batch of its own. Where all passes have the same, a pass must leave
nothing on it: a tensor that forward has require a gradient would keep that of the last pass, and
what forward takes out of a dictionary would be gone.

Invariant: the values are the given ones, in the same storages; what is one object in what is given
is one object in what comes out; tensors that require a gradient are the given ones themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ckptcli.peers.module_step import Step


def given_anew(step: Step) -> Step:
    """The step with other tensors over the storages of its input and batch, in other containers."""
    known: dict[int, Any] = {}
    return replace(
        step,
        args=_anew(step.args, known),
        kwargs={name: _anew(value, known) for name, value in step.kwargs.items()},
        batch=_anew(step.batch, known),
    )


def _anew(value: Any, known: dict[int, Any]) -> Any:
    """Of tensors, dictionaries, lists and tuples; anything else is as it is."""
    if id(value) not in known:
        known[id(value)] = _made(value, known)
    return known[id(value)]


def _made(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.requires_grad else value.detach()
    if type(value) is dict:
        return {key: _anew(each, known) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_anew(each, known) for each in value)
    return value
