"""A PyTorch module that `torch.compile` compiled, measured as compiled.

A dispatch mode would have it run op by op again, in silence: what it holds is asked of the graph of
its backward pass, and how high it goes of the allocator. The budget is the compiler's own
(`activation_memory_budget`): of what a forward pass could hold, the share that it may.

Invariant: no setting of PyTorch's is changed but while a graph is compiled.
Source: `torch/_functorch/config.py`, `torch/_functorch/partitioners.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ckptcli.measure.memory import Memory, held_alone
from ckptcli.measure.subject import gradients_of
from ckptcli.peers.base import NoPeer
from ckptcli.peers.torch_allocator import Rises, allocator_rises
from ckptcli.peers.torch_graph import tensors_in_steps
from ckptcli.peers.torch_module import ModuleNetwork, UserModule
from ckptcli.peers.torch_storages import storage_key, storages

ROUNDING = 10.0
"""How many times further a fused kernel's rounding may be than that of the same ops."""

LOW_PRECISION_UNITS = 4
"""Units in the last place of the coarsest dtype: fused ops do not round in between."""

_LIMITS = ("recompile_limit", "accumulated_recompile_limit", "cache_size_limit")

UNWATCHED = "it is compiled: what watches a pass would have it run op by op"


class CompiledNetwork(ModuleNetwork):
    """The module compiled, with the checkpoints that it makes itself.

    Attributes:
        graphs: how many graphs were compiled.
        compile_s: what the first pass took.
    """

    is_compiled = True

    def __init__(self, user: UserModule, seed: int, budget: float | None) -> None:
        """`budget` is the share, from 0 to 1; None leaves the compiler its own.

        Raises:
            NoPeer: it does not compile, or nothing of it does.
        """
        super().__init__(user, seed, has_own_checkpoints=True)
        if any(isinstance(tensor, FakeTensor) for tensor in user.state()):
            raise NoPeer("shapes alone are not compiled")
        self.graphs = 0
        self._budget = budget
        self._call: Callable[..., Any] = torch.compile(user.module, backend=self._compiled)
        start_s = time.perf_counter()
        try:
            with _without_limit():
                gradients_of(self)
        except Exception as error:  # whatever the compiler or its C++ raises
            first = (str(error).strip().splitlines() or [""])[0]
            raise NoPeer(f"torch.compile fails: {type(error).__name__}: {first}") from error
        self.compile_s = time.perf_counter() - start_s
        if not self.graphs:
            raise NoPeer("torch.compile finds nothing in it to compile")

    @property
    def tolerance(self) -> float:
        """Wider than without: kernels that are fused round elsewhere."""
        dtypes = [leaf.dtype for leaf in self.user.state() if leaf.is_floating_point()]
        coarsest = max((torch.finfo(dtype).eps for dtype in dtypes), default=0.0)
        return max(ROUNDING * super().tolerance, LOW_PRECISION_UNITS * coarsest)

    def memory(self) -> Memory:
        """What one pass takes; some more are run."""
        user, optimizer = self.user, self.user.optimizer
        own = _bytes_of(user.own_tensors())
        state = {} if optimizer is None else _bytes_of(optimizer.state())
        rises = allocator_rises(self)
        loss = self.forward()
        held = _bytes_of(tensors_in_steps([loss.grad_fn]))
        not_saved = {*own, *_bytes_of([loss])}
        saved = {key: size for key, size in held.items() if key not in not_saved}
        self.backward(loss)
        for _ in range(1, self.micro_batches):
            self.backward(self.forward())
        found = held_alone(sum(saved.values()), len(saved))
        before_bytes = sum((own | state).values())
        return found if rises is None else _with_peaks(found, own, state, before_bytes, rises)

    def _compiled(self, graph: Any, inputs: Any) -> Any:
        """What `torch.compile` calls for each graph. A backend of its own is also what keeps the
        graphs of one strategy from another's, whose code is the same.
        """
        from torch._functorch import config as functorch
        from torch._inductor import config as inductor
        from torch._inductor.compile_fx import compile_fx

        self.graphs += 1
        budget = {} if self._budget is None else {"activation_memory_budget": self._budget}
        # Random numbers are eager's, so that a dropout is the same with and without.
        with functorch.patch(**budget), inductor.patch(fallback_random=True):
            return compile_fx(graph, inputs)


def _without_limit() -> AbstractContextManager[None]:
    """Inside, code that was compiled often is compiled once more: that of a Sequential is the same
    for all, and beyond a limit it would run as it is, in silence.
    """
    from torch._dynamo import config

    names = [name for name in _LIMITS if hasattr(config, name)]
    limits: AbstractContextManager[None] = config.patch(dict.fromkeys(names, 10_000))
    return limits


def _with_peaks(
    found: Memory, own: dict[int, int], state: dict[int, int], before_bytes: int, rises: Rises
) -> Memory:
    step_bytes = rises.step_bytes
    return replace(
        found,
        params_input_bytes=sum(own.values()),
        optimizer_bytes=None if step_bytes is None else sum(state.values()),
        traced_peak_forward_bytes=before_bytes + rises.forward_bytes,
        traced_peak_backward_bytes=before_bytes + rises.backward_bytes,
        traced_peak_step_bytes=None if step_bytes is None else before_bytes + step_bytes,
    )


def _bytes_of(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    return {storage_key(s): s.nbytes() for tensor in tensors for s in storages(tensor)}
