"""A PyTorch module of the user's own with its input, and one pass of it.

The loss of an output is the user's, or the one that `torch_loss` takes.

Invariant: all copies start from the same parameters, buffers and random state in every pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from ckptcli.options.keywords import shown_keyword
from ckptcli.peers.agreement import TOLERANCES
from ckptcli.peers.base import Values
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_step import Step
from ckptcli.peers.torch_given import given_anew
from ckptcli.peers.torch_loss import loss_and_terms, tensors_in, users_loss
from ckptcli.peers.torch_optimizer import StepOptimizer
from ckptcli.peers.torch_own import without_own_checkpoints
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.units import count

SMALLER = "make the module or its input smaller"


Gradients = tuple[Sequence[torch.Tensor], Sequence[torch.Tensor | None]]
"""The losses of a step's micro-batches, and after the last of them the gradients."""


@dataclass(frozen=True, slots=True)
class UserModule:
    """What was asked for, and what `make` returned, its optimizer opened; `make` is None where it
    was at hand.
    """

    request: ModuleRequest
    step: Step
    make: Callable[..., object] | None
    optimizer: StepOptimizer | None = None

    @property
    def text(self) -> str:
        """What messages call it."""
        return self.request.text

    @property
    def module(self) -> torch.nn.Module:
        """The module of the step."""
        module: torch.nn.Module = self.step.module
        return module

    @property
    def device(self) -> torch.device:
        """Where the module is, and its input."""
        return next(iter(self.own_tensors())).device

    @property
    def title(self) -> str:
        """`FILE.py:MAKE, depth = 4, Net with 1,234 parameters`."""
        size = sum(parameter.numel() for parameter in self.module.parameters())
        keywords = [f"{name} = {shown_keyword(v)}" for name, v in self.request.keywords.items()]
        module = f"{type(self.module).__name__} with {count(size, 'parameter', f'{size:,}')}"
        return ", ".join([self.text, *keywords, module])

    def named_parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """By their paths; those of a loss that is a module too, behind `loss.`."""
        loss = self.step.loss
        own = list(self.module.named_parameters())
        if not isinstance(loss, torch.nn.Module):
            return own
        known = {id(parameter) for _, parameter in own}
        others = [(f"loss.{name}", p) for name, p in loss.named_parameters() if id(p) not in known]
        return own + others

    def buffers(self) -> list[torch.Tensor]:
        """Of the module, and of a loss that is one."""
        loss = self.step.loss
        others = loss.buffers() if isinstance(loss, torch.nn.Module) else ()
        return [*self.module.buffers(), *others]

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those that require a gradient."""
        return [p for _, p in self.named_parameters() if p.requires_grad]

    def parameter_names(self) -> list[str]:
        """The paths of `parameters()`, and what the input's leaves are called."""
        names = [name for name, p in self.named_parameters() if p.requires_grad]
        return [*names, *(f"input {i}" for i, _ in enumerate(self.input_leaves()))]

    @property
    def has_cache(self) -> bool:
        """Whether it is a model that keeps keys and values for the next token; one of transformers
        does not while it checkpoints itself in training, whatever its configuration says.
        """
        has_none = any(
            part.training and vars(part).get("gradient_checkpointing") is True
            for part in self.module.modules()
        )
        return bool(self.caching_configs()) and not has_none

    def caching_configs(self) -> list[Any]:
        """The configurations that say so."""
        configs = {id(c): c for part in self.module.modules() if (c := vars(part).get("config"))}
        return [c for c in configs.values() if getattr(c, "use_cache", False) is True]

    def state(self) -> list[torch.Tensor]:
        """Parameters and buffers."""
        return [*(parameter for _, parameter in self.named_parameters()), *self.buffers()]

    def input_tensors(self) -> list[torch.Tensor]:
        """The tensors in the input and the batch, each once."""
        step = self.step
        found = tree_leaves((step.arguments, dict(step.kwargs), step.batch))
        return list({id(leaf): leaf for leaf in found if isinstance(leaf, torch.Tensor)}.values())

    def input_leaves(self) -> list[torch.Tensor]:
        """Those of the input that require a gradient."""
        return [t for t in self.input_tensors() if t.requires_grad and t.is_leaf]

    def own_tensors(self) -> list[torch.Tensor]:
        """What is there before forward."""
        return [*self.state(), *self.input_tensors()]


class ModuleNetwork:
    """A subject of the rounds: a step of the module from the same parameters and random state each
    time, with the micro-batches and the optimizer that it has.
    """

    splits = True
    is_compiled = False

    def __init__(self, user: UserModule, seed: int, has_own_checkpoints: bool = False) -> None:
        """`has_own_checkpoints` is whether those that the module makes itself are left on."""
        self.user = user
        self.seed = seed
        self.loss_terms = 0
        self.micro_batches = user.step.accumulate
        self.has_step = user.optimizer is not None
        self._losses: list[torch.Tensor] = []
        self._output: object = None
        self._call: Callable[..., Any] = user.module
        self._own = nullcontext if has_own_checkpoints else without_own_checkpoints
        self._leaves = [*user.parameters(), *user.input_leaves()]
        self._step = given_anew(user.step)

    @property
    def output_bytes(self) -> int:
        """What is held of the last output, if it is held until backward is done; bytes."""
        found = tensors_in(self._output, self.user.text)
        return sum({storage_key(s): s.nbytes() for t in found for s in storages(t)}.values())

    @property
    def held_output(self) -> object:
        """The last output, if it is held until backward is done; else None."""
        return self._output

    def forward(self) -> torch.Tensor:
        """The loss; nothing refers to the output then, unless the step keeps it."""
        step = self._step
        if not self._losses:
            set_random_states(self.seed)
        with self._own():
            output = self._call(*step.arguments, **step.kwargs)
            if step.loss is None:
                loss, self.loss_terms = loss_and_terms(output, self.user.text)
            else:
                loss, self.loss_terms = users_loss(step, output, self.user.text), 1
        if step.keep_output:
            self._output = output
        return loss if self.micro_batches == 1 else loss / self.micro_batches

    def backward(self, state: torch.Tensor) -> Gradients:
        """As in training: gradients go into `.grad`, from where they are taken after the last
        micro-batch.
        """
        state.backward()
        self._output = None
        self._step = given_anew(self.user.step)
        self._losses.append(state.detach())
        if len(self._losses) < self.micro_batches:
            return self._losses, ()
        losses, self._losses = self._losses, []
        gradients = [leaf.grad for leaf in self._leaves]
        for leaf in self._leaves:
            leaf.grad = None
        return losses, gradients

    def step(self, result: Any) -> None:
        """The optimizer's, by the gradients of the last `backward`."""
        assert self.user.optimizer is not None
        self.user.optimizer.step(result[1])

    def put_back(self) -> None:
        """Give the parameters the values from before the step."""
        assert self.user.optimizer is not None
        self.user.optimizer.put_back()

    def values(self, result: Any) -> Values:
        """Loss and gradients on the host, in double precision where all parameters have it; a
        gradient that is not there is zero.
        """
        losses, gradients = result
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        found = [
            torch.zeros_like(parameter) if gradient is None else gradient
            for parameter, gradient in zip(self._leaves, gradients)
        ]
        dense = [_real(gradient.to("cpu").to_dense()).to(dtype) for gradient in found]
        loss = sum(float(each) for each in losses)
        return Values(loss, [gradient.numpy() for gradient in dense])

    @property
    def dtype(self) -> str:
        """The dtype that `values` has: float64, or float32 for all others."""
        kinds = {leaf.dtype for leaf in self._leaves}
        return "float64" if kinds <= {torch.float64, torch.complex128} else "float32"

    @property
    def tolerance(self) -> float:
        """How far loss and gradients may be from the reference's, as a share."""
        return TOLERANCES[self.dtype]

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


@contextmanager
def random_states_kept() -> Iterator[None]:
    """Afterwards these are what they were."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    has_devices = torch.cuda.is_available() and torch.cuda.is_initialized()
    of_devices = torch.cuda.get_rng_state_all() if has_devices else []
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        if of_devices:
            torch.cuda.set_rng_state_all(of_devices)
        random.setstate(states[1])
        np.random.set_state(states[2])


def changed_buffers(plain: UserModule, other: UserModule) -> list[str]:
    """The buffers that differ after as many passes of both: state that recomputation moves."""
    buffers = zip(plain.module.named_buffers(), other.module.buffers())
    return [name for (name, own), found in buffers if not torch.equal(own, found)]
