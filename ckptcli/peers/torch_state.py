"""State beside a PyTorch module's parameters that a pass may move: buffers, attributes, generators.

Looked at are buffers and plain tensors by their bits, numbers and texts by their value, containers
by their size, generators by their state; of a module its own, and what its file has at its top
level.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from ckptcli.peers.torch_bits import digest
from ckptcli.peers.torch_paths import WHOLE
from ckptcli.peers.user_state import state_of_mapping

Key = tuple[str, str]
"""Kind and name."""

BUFFER, ATTRIBUTE, GENERATOR, GLOBAL = "buffer", "attribute", "generator", "global"
RANDOM = "random state"
TORCH = "of PyTorch's own generator"


def module_state(path: str, module: torch.nn.Module) -> dict[Key, object]:
    """Of the module itself, not of those inside it."""
    prefix = "" if path == WHOLE else f"{path}."
    found: dict[Key, object] = {
        (BUFFER, f"{prefix}{name}"): digest(buffer)
        for name, buffer in module.named_buffers(recurse=False)
    }
    own = {name: v for name, v in vars(module).items() if name[0] != "_" and name != "training"}
    found |= {(ATTRIBUTE, name): value for name, value in state_of_mapping(prefix, own)}
    for name, value in own.items():
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            found[ATTRIBUTE, f"{prefix}{name}"] = digest(value)
    return found | {(GENERATOR, name): state for name, state in _generators(prefix, own)}


def surrounding_state(make: Callable[[], object] | None) -> dict[Key, object]:
    """Of the file that `make` is in, if there is one, and the random states of the process."""
    top = getattr(make, "__globals__", {})
    names = {name: value for name, value in top.items() if not isinstance(value, torch.nn.Module)}
    return {
        **{(GLOBAL, name): value for name, value in state_of_mapping("", names)},
        **{(GENERATOR, name): state for name, state in _generators("", names)},
        (RANDOM, TORCH): torch.get_rng_state().numpy().tobytes(),
        (RANDOM, "of Python's `random`"): hash(random.getstate()),
        (RANDOM, "of `numpy.random`"): _of_numpy(np.random.get_state(legacy=False)),
    }


def _generators(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in list(values.items()):
        if isinstance(value, torch.Generator):
            yield f"{prefix}{name}", value.get_state().cpu().numpy().tobytes()
        elif isinstance(value, random.Random):
            yield f"{prefix}{name}", hash(value.getstate())
        elif isinstance(value, np.random.Generator):
            yield f"{prefix}{name}", repr(value.bit_generator.state)
        elif isinstance(value, np.random.RandomState):
            yield f"{prefix}{name}", _of_numpy(value.get_state(legacy=False))


def _of_numpy(state: Any) -> object:
    return state["state"]["key"].tobytes(), state["state"]["pos"]
