"""The account of a PyTorch module's pass: when each storage lived, where it was made, what it is.

PyTorch tells in which part of a pass an op runs. Outside of a backward pass it is the forward's, or
the optimizer's where that is said; inside one it computes something again where gradients are
recorded or a module is called, and is backward's otherwise. A gradient that the loss is made of, as
a gradient penalty is, is the forward's. A step of the backward pass belongs to
the module during whose forward it got its number.

Invariant: what was live at the peak sums to the ledger's peak, to the byte.
Source: `torch/csrc/autograd/function.h`, `sequence_nr`; `torch/utils/checkpoint.py`.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ckptcli.measure.memory import Holder, LiveTensor, PeakLive
from ckptcli.peers.torch_ledger import StorageLedger
from ckptcli.peers.torch_lines import lines_here
from ckptcli.peers.torch_paths import WHOLE, Paths
from ckptcli.peers.torch_storages import storage_key, storages
from ckptcli.peers.torch_work import Work

FORWARD, RECOMPUTE, BACKWARD, STEP = "forward", "recompute", "backward", "step"
LARGEST_SHOWN = 100
NOBODY: Mapping[int, Sequence[str]] = {}
_NO_LINES = ("", "")
_OUTSIDE = -1
"""The number of a backward pass where none runs."""


@dataclass(slots=True, eq=False)
class Birth:
    """A storage, from when it was made.

    Attributes:
        phase: forward, recompute, backward or step.
        path: the module during whose forward it was made, or whose backward step made it.
        op: what made it, as in `aten.NAME`; "" for what was there before the pass.
        lines: the user's line that led to it and the innermost, as `lines_here` has them.
        born, died: ticks of the account; it is not live any more at `died`.
        born_s: when that was, seconds from any start.
        step: the number of the backward step that made it.
        outlives_step: whether another step saw it: a gradient, or what was handed on otherwise.
        why: what it is, where the account was told: a parameter, an input.
    """

    size_bytes: int
    shape: tuple[int, ...]
    dtype: str
    phase: str
    path: str
    op: str
    lines: tuple[str, str]
    born: int
    born_s: float
    died: int | None = None
    step: int | None = None
    outlives_step: bool = True
    why: str = ""

    def lived_at(self, tick: int) -> bool:
        """Whether the storage was live at `tick`."""
        return self.born <= tick and (self.died is None or self.died > tick)


class Account(StorageLedger):
    """A ledger that knows of each storage what `Birth` says; `births` are those of the live."""

    def __init__(self) -> None:
        super().__init__()
        self.paths = Paths()
        self.births: dict[int, Birth] = {}
        self.history: list[Birth] = []
        self.tick = 0
        self.highest_bytes = 0
        self.highest: Birth | None = None
        """The storage that made the peak."""
        self.work = Work()
        self._outside = FORWARD
        self._backward_is = ""
        self._forward_ends: list[int] = []
        self._op = self._why = ""
        self._owners: dict[int, str] = {}
        self._numbers: list[int] = []
        self._number_paths: list[str] = []
        self._step_path = WHOLE

    @contextmanager
    def following(self, module: torch.nn.Module) -> Iterator[None]:
        """Inside, storages are made by the parts of this module."""
        for path, part in module.named_modules():
            for parameter in part.parameters(recurse=False):
                self._owners.setdefault(id(parameter), path or WHOLE)
        with self.paths.following(module):
            yield

    def enter(self, tensors: Iterable[torch.Tensor], why: str) -> None:
        """Count what is there before the pass."""
        self._why = why
        for tensor in tensors:
            self.count(tensor)
        self._why = ""

    def are(self, tensors: Iterable[torch.Tensor | None], why: str) -> None:
        """Say of live storages what they are; not of those whose reason is known."""
        for tensor in tensors:
            for storage in () if tensor is None else storages(tensor):
                birth = self.births.get(storage_key(storage))
                if birth is not None:
                    birth.why = birth.why or why

    def end_forward(self) -> None:
        """What is live now is what a forward pass leaves."""
        self._forward_ends.append(self.tick)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Inside runs the optimizer's step."""
        self._outside = STEP
        try:
            yield
        finally:
            self._outside = FORWARD

    @contextmanager
    def backward_is(self, phase: str) -> Iterator[None]:
        """Inside, a backward pass is the forward's, since the loss is made of it, or backward's
        though all its ops are recorded.
        """
        before, self._backward_is = self._backward_is, phase
        try:
            yield
        finally:
            self._backward_is = before

    def bytes_by_why(self, tick: int) -> dict[str, int]:
        """What was live at a tick, by what it is; bytes."""
        found: Counter[str] = Counter()
        for birth in self.history:
            if birth.lived_at(tick):
                found[self.why_of(birth)] += birth.size_bytes
        return dict(sorted(found.items()))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and count what it returns, for the module that runs."""
        self._op = func.overloadpacket.__name__
        phase = self.phase
        if phase != BACKWARD:
            self._give_numbers()
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self.work.add(phase, func, (args, kwargs or {}), result)
        return result

    @property
    def phase(self) -> str:
        """The part of the pass that runs now."""
        if self._backward_is == FORWARD or torch._C._current_graph_task_id() == _OUTSIDE:
            return self._outside
        records = torch.is_grad_enabled() and self._backward_is != BACKWARD
        return RECOMPUTE if records or self.paths.running else BACKWARD

    def born(self, key: int, tensor: torch.Tensor) -> None:
        self.tick += 1
        phase, step = self.phase, None
        path, lines = self.paths.now, _NO_LINES
        if self._why:
            path = self._owners.get(id(tensor), WHOLE)
        elif phase == BACKWARD:
            path, step = self._now_in_backward()
        else:
            lines = lines_here()
        self.births[key] = birth = Birth(
            self.live[key],
            tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            phase,
            path,
            self._op,
            lines,
            self.tick,
            time.perf_counter(),
            step=step,
            why=self._why,
        )
        self.history.append(birth)
        if self.bytes_in_use > self.highest_bytes:
            self.highest_bytes, self.highest = self.bytes_in_use, birth

    def moved(self, key: int, to: int) -> None:
        super().moved(key, to)
        self.births[to] = self.births.pop(key)

    def gone(self, key: int) -> None:
        """The storage has no reference any more."""
        super().gone(key)
        self.tick += 1
        birth = self.births.pop(key)
        birth.died = self.tick
        birth.outlives_step = birth.step is None or birth.step != _current_step()

    def live_at_peak(
        self, held_by: Mapping[int, Sequence[str]] = NOBODY, holders: Sequence[Holder] = ()
    ) -> PeakLive | None:
        """What was live at the peak, and what ran then; None where nothing was.

        `held_by` has the names of a storage's holders by its place in `history`.
        """
        if self.highest is None:
            return None
        tick = self.highest.born
        live = [(i, birth) for i, birth in enumerate(self.history) if birth.lived_at(tick)]
        largest = sorted(live, key=lambda found: -found[1].size_bytes)[:LARGEST_SHOWN]
        return PeakLive(
            largest=tuple(self._as_live(birth, held_by.get(i, ())) for i, birth in largest),
            total_bytes=sum(birth.size_bytes for _, birth in live),
            total_tensors=len(live),
            bytes_by_why=self.bytes_by_why(self.highest.born),
            phase=self.highest.phase,
            module=self.highest.path,
            holders=tuple(holders),
        )

    def _as_live(self, birth: Birth, held_by: Sequence[str]) -> LiveTensor:
        source, library = birth.lines
        return LiveTensor(
            node=None,
            op=birth.op or None,
            shape=birth.shape,
            bytes=birth.size_bytes,
            why=self.why_of(birth),
            source=source or library,
            module=birth.path,
            held_by=tuple(held_by),
        )

    def why_of(self, birth: Birth) -> str:
        """What a storage is, as the record names it."""
        if birth.why:
            return birth.why
        if birth.phase == RECOMPUTE:
            return "recomputed"
        if birth.phase == BACKWARD:
            return "gradient" if birth.outlives_step else "temporary"
        if birth.phase == STEP:
            return "optimizer" if birth.died is None else "temporary"
        end = bisect_left(self._forward_ends, birth.born)
        is_left = end < len(self._forward_ends) and birth.lived_at(self._forward_ends[end])
        return "saved" if is_left else "temporary"

    def _give_numbers(self) -> None:
        """Steps that were numbered since the last op are of the module that runs."""
        number = torch._C._autograd._get_sequence_nr()
        if not self._numbers or number > self._numbers[-1]:
            self._numbers.append(number)
            self._number_paths.append(self.paths.now)

    def _now_in_backward(self) -> tuple[str, int | None]:
        """The module of the backward step that runs, and its number; between two steps that of the
        last.
        """
        step = torch._C._current_autograd_node()
        if step is None:
            return self._step_path, None
        owner = self._owners.get(id(getattr(step, "variable", None)))
        number = int(step._sequence_nr())
        if owner is None:
            place = bisect_right(self._numbers, number)
            owner = self._number_paths[place] if place < len(self._numbers) else WHOLE
        self._step_path = owner
        return owner, number


def _current_step() -> int | None:
    step = torch._C._current_autograd_node()
    return None if step is None else int(step._sequence_nr())
