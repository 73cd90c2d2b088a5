"""A PyTorch module of the user's own, `FILE.py:MAKE`, without and with a checkpoint a child.

`MAKE()` returns `(module, input)`, where a tuple of inputs is passed as so many arguments, or a
module that has an attribute `example_input`; a class of modules will do. The loss is the sum of all
outputs that a gradient flows to.

Invariant: both copies start from the same parameters, buffers and random state in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from ckptcli.checkpoint.user_code import is_user_code, load_name, running
from ckptcli.errors import UsageError
from ckptcli.peers.base import Values

CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
SMALLER = "make the module or its input smaller"
_CONTRACT = "it returns (module, input), or a module with an attribute `example_input`"


@dataclass(frozen=True, slots=True)
class UserModule:
    """What `MAKE()` returned. `text` is `FILE.py:MAKE`."""

    text: str
    module: torch.nn.Module
    inputs: tuple[Any, ...]

    @property
    def title(self) -> str:
        """`FILE.py:MAKE, Net with 1,234 parameters`."""
        count = sum(parameter.numel() for parameter in self.module.parameters())
        return f"{self.text}, {type(self.module).__name__} with {count:,} parameters"

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those that require a gradient."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def parameter_names(self) -> list[str]:
        """The paths of `parameters()`."""
        return [name for name, p in self.module.named_parameters() if p.requires_grad]

    def state(self) -> list[torch.Tensor]:
        """Parameters and buffers."""
        return [*self.module.parameters(), *self.module.buffers()]

    def input_tensors(self) -> list[torch.Tensor]:
        """The tensors in the input."""
        return [leaf for leaf in tree_leaves(self.inputs) if isinstance(leaf, torch.Tensor)]

    def own_tensors(self) -> list[torch.Tensor]:
        """What is there before forward."""
        return [*self.state(), *self.input_tensors()]


def load_module(text: str, seed: int) -> UserModule:
    """Run the file and call `MAKE`, the random state set to `seed` before each.

    Raises:
        UsageError: the file cannot be run, or what it makes is no module with an input.
        ProgramError: `MAKE` fails; names the line.
    """
    return _make(text, _maker(text, seed), seed)


def _maker(text: str, seed: int) -> Callable[[], object]:
    if not is_user_code(text):
        raise UsageError(f"--module {text} is not FILE.py:MAKE", "write `--module net.py:make`")
    torch.manual_seed(seed)
    make = load_name(text)
    if not callable(make) or isinstance(make, torch.nn.Module):
        raise UsageError(f"`{text}` is not a function", _CONTRACT)
    return make


def _make(text: str, make: Callable[[], object], seed: int) -> UserModule:
    torch.manual_seed(seed)
    with running(text, SMALLER):
        made = make()
    return _checked(text, made)


def _checked(text: str, made: object) -> UserModule:
    if isinstance(made, torch.nn.Module):
        if not hasattr(made, "example_input"):
            raise UsageError(f"`{text}` gives a module without an input", _CONTRACT)
        module, given = made, made.example_input
    elif isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        module, given = made
    else:
        kind = type(made).__name__
        raise UsageError(f"`{text}` gives an object of type {kind}, not a module", _CONTRACT)
    user = UserModule(text, module, given if isinstance(given, tuple) else (given,))
    if not user.parameters():
        raise UsageError(
            f"the module of `{text}` has no parameter that requires a gradient",
            "leave `requires_grad` on for one",
        )
    return user


def regions_in(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """The children, with their paths; the elements of a Sequential, ModuleList or ModuleDict
    instead of it. A module without children is none.
    """
    found: list[tuple[str, torch.nn.Module]] = []
    waiting = [(name, child) for name, child in module.named_children()][::-1]
    while waiting:
        path, child = waiting.pop()
        if isinstance(child, CONTAINERS):
            inner = [(f"{path}.{name}", element) for name, element in child.named_children()]
            waiting += inner[::-1]
        else:
            found.append((path, child))
    return found


def checkpoint_children(module: torch.nn.Module) -> list[str]:
    """Have each child recomputed in backward, by its own `forward`; returns their paths."""
    regions = regions_in(module)
    for region in {id(child): child for _, child in regions}.values():
        region.forward = _checkpointed(region.forward)
    return [path for path, _ in regions]


def _checkpointed(forward: Any) -> Any:
    def call(*arguments: Any, **keywords: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, **keywords)

    return call


class ModuleNetwork:
    """A subject of the rounds: one pass of the module under the same random state each time."""

    splits = True

    def __init__(self, user: UserModule, seed: int) -> None:
        self.user = user
        self.seed = seed
        self._parameters = user.parameters()

    def forward(self) -> torch.Tensor:
        torch.manual_seed(self.seed)
        output = self.user.module(*self.user.inputs)
        return loss_of(output, self.user.text)

    def backward(self, state: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor | None]]:
        return state, torch.autograd.grad(state, self._parameters, allow_unused=True)

    def values(self, result: Any) -> Values:
        """Loss and gradients on the host, in double precision where all parameters have it; a
        gradient that is not there is zero.
        """
        loss, gradients = result
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        found = [
            torch.zeros_like(parameter) if gradient is None else gradient
            for parameter, gradient in zip(self._parameters, gradients)
        ]
        dense = [gradient.to("cpu", dtype).to_dense() for gradient in found]
        return Values(float(loss.detach()), [gradient.numpy() for gradient in dense])

    @property
    def dtype(self) -> str:
        """The dtype that `values` has: float64, or float32 for all others."""
        kinds = {parameter.dtype for parameter in self._parameters}
        return "float64" if kinds == {torch.float64} else "float32"

    def check(self, result: Any) -> float | None:
        first = next((gradient for gradient in result[1] if gradient is not None), None)
        return None if first is None else float(first.double().sum())


def loss_of(output: Any, text: str) -> torch.Tensor:
    """The sum of every floating-point tensor in `output`, in order.

    Raises:
        UsageError: there is none that a gradient flows to.
    """
    tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    sums = [tensor.sum() for tensor in tensors if tensor.requires_grad]
    if not sums:
        raise UsageError(
            f"no output of the module of `{text}` depends on a parameter",
            "have forward return a tensor that does",
        )
    return torch.stack([term.to(sums[0].dtype) for term in sums]).sum() if sums[1:] else sums[0]


def pair(text: str, seed: int) -> tuple[UserModule, UserModule, list[str]]:
    """The module plain and checkpointed, with equal state, and the paths of the checkpoints.

    Raises:
        UsageError, ProgramError: as `load_module`; a module without children, or one that is not
            on the CPU; `MAKE` gives another module when it is called again.
    """
    make = _maker(text, seed)
    plain = _make(text, make, seed)
    _check_is_on_cpu(plain)
    other = _make(text, make, seed)
    with running(text, SMALLER):
        other.module.load_state_dict(plain.module.state_dict())
    other = UserModule(text, other.module, plain.inputs)
    regions = checkpoint_children(other.module)
    if not regions:
        raise UsageError(
            f"the module of `{text}` has no children to checkpoint",
            "wrap layers in a Sequential or as attributes",
        )
    return plain, other, regions


def _check_is_on_cpu(user: UserModule) -> None:
    """Refuse a device whose work would go on after the clock is read."""
    away = next((tensor for tensor in user.own_tensors() if tensor.device.type != "cpu"), None)
    if away is not None:
        raise UsageError(
            f"`{user.text}` gives a module or an input on `{away.device}`: a module is timed on "
            "the CPU alone",
            "leave the module and its input on the CPU",
        )


def changed_buffers(plain: UserModule, other: UserModule) -> list[str]:
    """The buffers that differ after as many passes of both: state that recomputation moves."""
    buffers = zip(plain.module.named_buffers(), other.module.buffers())
    return [name for (name, own), found in buffers if not torch.equal(own, found)]
