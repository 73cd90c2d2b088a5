"""An account of what a script runs, whatever it is: forward, backward, an optimizer's step.

PyTorch tells of every module that is called, and of every optimizer's step; where a backward pass
begins say `torch.autograd.backward` and `grad`, which are wrapped meanwhile. A storage from before
is counted from the beginning once an op is given it.

Invariant: PyTorch is afterwards as it was, and the account changes no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._pytree import tree_leaves

from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.measure.saved_list import SavedList, SavedTotal
from ckptcli.peers.torch_account import BACKWARD, FORWARD, STEP, Account
from ckptcli.peers.torch_graph import held_by_steps
from ckptcli.peers.torch_ledger import counting
from ckptcli.peers.torch_optimizer import state_of
from ckptcli.peers.torch_paths import WHOLE
from ckptcli.peers.torch_saved import saved_storage
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.peers.torch_timeline import moments

_GRAD = "grad"
_BACKWARD = {"backward": 3, _GRAD: 4}
"""Of `torch.autograd`, what begins a backward pass, with the place of `create_graph` among its
arguments.
"""


@dataclass(frozen=True, slots=True)
class Moment:
    """The account after a storage was made.

    Attributes:
        phase: forward, recompute, backward or step.
        module: the part of the model that made it, by its path.
        op: what made it, as in `aten.NAME`.
        bytes: all that was live then.
    """

    phase: str
    module: str
    op: str
    bytes: int


class ScriptLedger(Account):
    """What a script holds; see `ckptcli.torch.ledger`."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._roots: list[torch.nn.Module] = []
        self._saved: list[ModuleSaved] | None = None
        self._is_closed = False

    @property
    def peak(self) -> int:
        """The most that was live at once, bytes; scratch memory inside of kernels is left out."""
        return self.highest_bytes

    def saved(self) -> Sequence[ModuleSaved]:
        """What the first forward pass left for its backward pass, largest first: without what was
        there before, and without what `backward` was called on. Without a backward pass, what was
        left at the end.
        """
        return self._saved or ()

    def by_module(self, depth: int | None = None) -> Sequence[SavedTotal]:
        """The sums of `saved()` by module, largest first; of paths the first `depth` names."""
        return SavedList("", self.saved()).totals("module", depth)

    def timeline(self) -> Sequence[Moment]:
        """What was live after each storage was made, in order."""
        return [
            Moment(birth.phase, birth.path, birth.op, live_bytes)
            for birth, live_bytes in moments(self.history)
        ]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op; what it is given and was there before is counted from the beginning."""
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                is_parameter = leaf.requires_grad and leaf.is_leaf
                self._was_there([leaf], "parameter" if is_parameter else "input")
        return super().__torch_dispatch__(func, types, args, kwargs)

    def gone(self, key: int) -> None:
        if not self._is_closed:
            super().gone(key)

    @contextmanager
    def following_script(self, modules: Iterable[torch.nn.Module]) -> Iterator[None]:
        """Inside, modules, optimizers and backward passes are followed."""
        for module in modules:
            self._name(module)
        handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._step_begins),
            register_optimizer_step_post_hook(self._step_ends),
        ]
        before = {name: getattr(torch.autograd, name) for name in _BACKWARD}
        for name, function in before.items():
            setattr(torch.autograd, name, partial(self._backward, name, function))
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(torch.autograd, name, function)
            for handle in handles:
                handle.remove()
            if self._saved is None:
                self._end_forward([])
            self._is_closed = True

    def _was_there(self, tensors: Iterable[torch.Tensor | None], why: str) -> None:
        """Count tensors from before as if they had been counted from the beginning."""
        for tensor in tensors:
            for storage in () if tensor is None else storages(tensor):
                if storage_key(storage) in self.live:
                    continue
                self.peak_bytes += storage.nbytes()
                self.highest_bytes += storage.nbytes()
                self._op = ""
                self.enter([tensor], why)
                self.births[storage_key(storage)].born = 0

    def _name(self, root: torch.nn.Module) -> None:
        """Count what a module has, and know its parts by their paths; of further modules behind
        their class.
        """
        prefix = type(root).__name__ if self._roots else ""
        self._roots.append(root)
        for path, part in root.named_modules():
            whole = ".".join(filter(None, (prefix, path))) or WHOLE
            self._names.setdefault(id(part), whole)
            self._kinds.setdefault(whole, type(part).__name__)
            for tensor in (*part.parameters(recurse=False), *part.buffers(recurse=False)):
                self._owners.setdefault(id(tensor), whole)
        self._was_there(root.parameters(), "parameter")
        self._was_there(root.buffers(), "buffer")

    def _enter(self, part: torch.nn.Module, arguments: Any) -> None:
        if id(part) not in self._names:
            self._name(part)
        self.paths.running.append(self._names[id(part)])

    def _leave(self, part: torch.nn.Module, arguments: Any, output: Any) -> None:
        self.paths.running.pop()

    def _step_begins(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        self._was_there(state_of(optimizer), "optimizer")
        self._outside = STEP

    def _step_ends(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        self._outside = FORWARD
        self.are(state_of(optimizer), "optimizer")

    def _backward(self, name: str, backward: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """In place of `torch.autograd.backward` and `grad`, whose first argument are the roots; one
        inside another is a checkpoint's, and a gradient that is differentiated is the forward's.
        """
        if self._backward_is or self.phase not in (FORWARD, STEP):
            return backward(*given, **named)
        place = _BACKWARD[name]
        is_recorded = named.get("create_graph", given[place] if len(given) > place else False)
        if is_recorded and name == _GRAD:
            with self.backward_is(FORWARD):
                return backward(*given, **named)
        roots = given[0] if given else named.get("tensors", named.get("outputs"))
        self._was_there(self._gradients(), "gradient of a parameter")
        self._end_forward([leaf for leaf in tree_leaves(roots) if torch.is_tensor(leaf)])
        with self.backward_is(BACKWARD) if is_recorded else nullcontext():
            result = backward(*given, **named)
        self.are(self._gradients(), "gradient of a parameter")
        return result

    def _gradients(self) -> list[torch.Tensor | None]:
        return [parameter.grad for root in self._roots for parameter in root.parameters()]

    def _end_forward(self, roots: Sequence[torch.Tensor]) -> None:
        self.are(roots, "output")
        self.end_forward()
        if self._saved is None:
            steps = held_by_steps([root.grad_fn for root in roots])
            left = [(key, birth) for key, birth in self.births.items() if not birth.why]
            found = [self._as_saved(key, birth, steps.get(key, ())) for key, birth in left]
            self._saved = sorted(found, key=lambda saved: -saved.bytes)

    def _as_saved(self, key: int, birth: Any, held_by: Sequence[str]) -> ModuleSaved:
        kind = self._kinds.get(birth.path, self._kinds.get(WHOLE, ""))
        return saved_storage(birth, kind, tuple(dict.fromkeys(held_by)))


@contextmanager
def script_ledger(modules: Iterable[torch.nn.Module]) -> Iterator[ScriptLedger]:
    """An account of what runs inside, where nothing collects garbage."""
    with (
        counting(ScriptLedger, lambda: None) as ledger,
        ledger.following_script(modules),
    ):
        yield ledger
