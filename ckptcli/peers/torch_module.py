"""A PyTorch module of the user's own, `FILE.py:MAKE`, and one pass of it.

`MAKE()` returns `(module, input)`, where a tuple of inputs is passed as so many arguments and a
mapping by its keywords, or a module that has an attribute `example_input`; a class of modules will
do. What the loss of an output
is says `torch_loss`.

Invariant: all copies start from the same parameters, buffers and random state in every pass.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from ckptcli.checkpoint.user_code import is_user_code, load_name, running
from ckptcli.errors import UsageError
from ckptcli.peers.base import Values
from ckptcli.peers.torch_loss import loss_and_terms
from ckptcli.peers.torch_own import without_own_checkpoints

SMALLER = "make the module or its input smaller"
_CONTRACT = "it returns (module, input), or a module with an attribute `example_input`"


@dataclass(frozen=True, slots=True)
class UserModule:
    """What `make()` returned. `text` is `FILE.py:MAKE`."""

    text: str
    module: torch.nn.Module
    inputs: tuple[Any, ...]
    keywords: Mapping[str, Any]
    make: Callable[[], object]

    @property
    def title(self) -> str:
        """`FILE.py:MAKE, Net with 1,234 parameters`."""
        count = sum(parameter.numel() for parameter in self.module.parameters())
        return f"{self.text}, {type(self.module).__name__} with {count:,} parameters"

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those that require a gradient."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def parameter_names(self) -> list[str]:
        """The paths of `parameters()`, and what the input's leaves are called."""
        names = [name for name, p in self.module.named_parameters() if p.requires_grad]
        return [*names, *(f"input {i}" for i, _ in enumerate(self.input_leaves()))]

    @property
    def has_cache(self) -> bool:
        """Whether it is a model that keeps keys and values for the next token."""
        configs = (getattr(part, "config", None) for part in self.module.modules())
        return any(getattr(config, "use_cache", False) is True for config in configs)

    def state(self) -> list[torch.Tensor]:
        """Parameters and buffers."""
        return [*self.module.parameters(), *self.module.buffers()]

    def input_tensors(self) -> list[torch.Tensor]:
        """The tensors in the input."""
        leaves = tree_leaves((self.inputs, dict(self.keywords)))
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def input_leaves(self) -> list[torch.Tensor]:
        """Those of the input that require a gradient."""
        return [t for t in self.input_tensors() if t.requires_grad and t.is_leaf]

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
    set_random_states(seed)
    make = load_name(text)
    if not callable(make) or isinstance(make, torch.nn.Module):
        raise UsageError(f"`{text}` is not a function", _CONTRACT)
    return make


def _make(text: str, make: Callable[[], object], seed: int) -> UserModule:
    set_random_states(seed)
    with running(text, SMALLER):
        made = make()
    return _checked(text, made, make)


def _checked(text: str, made: object, make: Callable[[], object]) -> UserModule:
    if isinstance(made, torch.nn.Module):
        if not hasattr(made, "example_input"):
            raise UsageError(f"`{text}` gives a module without an input", _CONTRACT)
        module, given = made, made.example_input
    elif isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        module, given = made
    else:
        kind = type(made).__name__
        raise UsageError(f"`{text}` gives an object of type {kind}, not a module", _CONTRACT)
    keywords = given if isinstance(given, Mapping) else {}
    inputs = () if keywords else given if isinstance(given, tuple) else (given,)
    user = UserModule(text, module, inputs, keywords, make)
    compiled = next((path for path, part in module.named_modules() if _is_compiled(part)), None)
    if compiled is not None:
        raise UsageError(
            f"the module of `{text}` is compiled"
            + (f" in `{compiled}`" if compiled else "")
            + ": what watches a pass would have it run op by op",
            "give the module as it is before torch.compile",
        )
    if not user.parameters() and not user.input_leaves():
        raise UsageError(
            f"the module of `{text}` has no parameter that requires a gradient, and its input "
            "requires none",
            "leave `requires_grad` on for one",
        )
    return user


def _is_compiled(part: torch.nn.Module) -> bool:
    """By `torch.compile`, as a module around it or in place of its call."""
    return hasattr(part, "_orig_mod") or part._compiled_call_impl is not None


class ModuleNetwork:
    """A subject of the rounds: one pass of the module under the same random state each time."""

    splits = True

    def __init__(self, user: UserModule, seed: int, has_own_checkpoints: bool = False) -> None:
        """`has_own_checkpoints` is whether those that the module makes itself are left on."""
        self.user = user
        self.seed = seed
        self.loss_terms = 0
        self._own = nullcontext if has_own_checkpoints else without_own_checkpoints
        self._leaves = [*user.parameters(), *user.input_leaves()]

    def forward(self) -> torch.Tensor:
        set_random_states(self.seed)
        with self._own():
            output = self.user.module(*self.user.inputs, **self.user.keywords)
        loss, self.loss_terms = loss_and_terms(output, self.user.text)
        return loss

    def backward(self, state: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor | None]]:
        """As in training: gradients go into `.grad`, from where they are taken."""
        state.backward()
        gradients = [leaf.grad for leaf in self._leaves]
        for leaf in self._leaves:
            leaf.grad = None
        return state, gradients

    def values(self, result: Any) -> Values:
        """Loss and gradients on the host, in double precision where all parameters have it; a
        gradient that is not there is zero.
        """
        loss, gradients = result
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        found = [
            torch.zeros_like(parameter) if gradient is None else gradient
            for parameter, gradient in zip(self._leaves, gradients)
        ]
        dense = [_real(gradient.to("cpu").to_dense()).to(dtype) for gradient in found]
        return Values(float(loss.detach()), [gradient.numpy() for gradient in dense])

    @property
    def dtype(self) -> str:
        """The dtype that `values` has: float64, or float32 for all others."""
        kinds = {leaf.dtype for leaf in self._leaves}
        return "float64" if kinds <= {torch.float64, torch.complex128} else "float32"

    def check(self, result: Any) -> float | None:
        first = next((gradient for gradient in result[1] if gradient is not None), None)
        return None if first is None else float(_real(first).double().sum())


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Of complex numbers, both parts: what differs in one alone differs."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def set_random_states(seed: int) -> None:
    """Of PyTorch, Python and NumPy: what is drawn is drawn again in the next pass."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def another(user: UserModule, seed: int) -> UserModule:
    """What `MAKE` gives when it is called again, with the state and the input of the first; a copy
    where it gives modules or parameters that it has given before.

    Raises:
        ProgramError: `MAKE` fails, or gives another module, or one that cannot be copied.
        UsageError: what it gives is no module with an input.
    """
    other = _make(user.text, user.make, seed)
    with running(user.text, SMALLER):
        if not _parts(user.module).isdisjoint(_parts(other.module)):
            return replace(user, module=copy.deepcopy(user.module))
        other.module.load_state_dict(user.module.state_dict())
    return replace(other, inputs=user.inputs, keywords=user.keywords)


def _parts(module: torch.nn.Module) -> set[int]:
    """The modules, parameters and buffers, by `id`."""
    parts = (*module.modules(), *module.parameters(), *module.buffers())
    return {id(part) for part in parts}


def check_is_on_cpu(user: UserModule) -> None:
    """Refuse a device whose work would go on after the clock is read.

    Raises:
        UsageError: the module or its input is on one.
    """
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
