"""What PyTorch's checkpoints compute again, held against the forward pass, op by op, bit for bit.

A dispatch mode sees the ops of a checkpoint's forward and of its recomputation, and keeps digests
of what they give. Of both the ops are matched in order by name, module and shapes: what a policy
saved is not computed again, and a recomputation ends as soon as backward has all that it needs.

Views are left out, since they compute nothing, memory that nothing was written to, and what is
written into a buffer: that is state, which is told by itself.
Source: `torch/utils/checkpoint.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ckptcli.measure.module_check import Moved, Place
from ckptcli.peers.torch_bits import as_array, digest
from ckptcli.peers.torch_lines import lines_here
from ckptcli.peers.torch_own import THEIRS, watched_checkpoints
from ckptcli.peers.torch_paths import Paths
from ckptcli.peers.torch_state import (
    ATTRIBUTE,
    BUFFER,
    GLOBAL,
    RANDOM,
    TORCH,
    Key,
    module_state,
    surrounding_state,
)
from ckptcli.peers.torch_storages import storage_key, storages

_UNWRITTEN = {"mkldnn_rnn_layer": 3, "_cudnn_rnn": 3}
"""From this output on an op gives scratch memory, which is not all written."""

State = dict[Key, object]


@dataclass(slots=True)
class _Op:
    """An op of a checkpoint's forward: where it is, and what it gave."""

    place: Place
    key: tuple[Any, ...]
    digests: list[bytes]
    values: list[Any] | None


@dataclass(frozen=True, slots=True)
class Differing:
    """An op that gave something else when it was computed again; both arrays, if they were kept."""

    place: Place
    output: int
    pair: tuple[Any, Any] | None


@dataclass(slots=True)
class Region:
    """One checkpoint of a pass: what its forward did."""

    number: int
    running: list[str]
    ops: list[_Op] = field(default_factory=list)
    entered: list[str] = field(default_factory=list)
    begin: State = field(default_factory=dict)
    moved: set[Key] = field(default_factory=set)
    is_begun: bool = False

    @property
    def block(self) -> tuple[str, ...]:
        """The outermost modules that it calls; the one that makes it where it calls none."""
        return tuple(dict.fromkeys(self.entered)) or tuple(self.running[-1:])


@dataclass(slots=True)
class _Open:
    """A region that runs; `place` is the op of its forward that the next is looked for from."""

    region: Region
    is_again: bool
    depth: int
    place: int = 0
    begin: State = field(default_factory=dict)
    modules: dict[str, torch.nn.Module] = field(default_factory=dict)


class Recorder(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not checked
    """One watched pass.

    Attributes:
        regions: every checkpoint that was made.
        compared: how many values were held against the forward's.
        differing: those that are not the same, in the order of recomputation.
        others: ops of recomputations that have no counterpart in the forward.
        draws: ops inside of checkpoints that draw from a generator that they are given.
        moved: what state was seen to move, by kind and name.
    """

    def __init__(self, make: Callable[[], object] | None, wanted: set[tuple[int, int]]) -> None:
        """`wanted` are the ops, by number of their region and index, whose values are kept."""
        super().__init__()
        self.regions: list[Region] = []
        self.compared = 0
        self.differing: list[Differing] = []
        self.others: list[Place] = []
        self.draws: list[Place] = []
        self.moved: dict[Key, Moved] = {}
        self.paths = Paths(self._entered)
        self._make = make
        self._wanted = wanted
        self._open: list[_Open] = []
        self._buffers: set[int] = set()

    @contextmanager
    def watching(self, module: torch.nn.Module) -> Iterator[None]:
        """Inside, one pass of the module is watched."""
        self._buffers = {storage_key(s) for buffer in module.buffers() for s in storages(buffer)}
        with watched_checkpoints(*self._checkpoints()), self.paths.following(module), self:
            yield
        for places in (self.others, self.draws):
            places[:] = [replace(p, block=self.regions[p.checkpoint - 1].block) for p in places]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op, and note what it gives for each checkpoint that is open."""
        result = func(*args, **(kwargs or {}))
        if self._open and not _computes_nothing(func):
            self._note(func, result, (args, kwargs))
        return result

    def _note(self, func: Any, result: Any, given: Any) -> None:
        name = func.overloadpacket.__name__
        outputs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        outputs = [t for t in outputs[: _UNWRITTEN.get(name)] if not self._is_buffer(t)]
        key = (name, self.paths.now, tuple((tuple(t.shape), t.dtype) for t in outputs))
        digests = [digest(tensor) for tensor in outputs]
        source, library = lines_here()
        draws = any(isinstance(leaf, torch.Generator) for leaf in tree_leaves(given))
        for opened in self._open:
            region = opened.region
            place = Place(
                (),  # not all of it is known before the region ends
                region.number,
                self.paths.now,
                name,
                opened.place if opened.is_again else len(region.ops),
                source,
                library,
            )
            if opened.is_again:
                self._hold(opened, key, place, digests, outputs)
                continue
            is_wanted = (region.number, len(region.ops)) in self._wanted
            values = [as_array(tensor) for tensor in outputs] if is_wanted else None
            region.ops.append(_Op(place, key, digests, values))
            if draws:
                self.draws.append(place)

    def _is_buffer(self, tensor: torch.Tensor) -> bool:
        return any(storage_key(storage) in self._buffers for storage in storages(tensor))

    def _hold(
        self,
        opened: _Open,
        key: tuple[Any, ...],
        place: Place,
        digests: list[bytes],
        outputs: list[torch.Tensor],
    ) -> None:
        """Hold an op that is computed again against the next of its kind in the forward."""
        ops = opened.region.ops
        found = next((i for i in range(opened.place, len(ops)) if ops[i].key == key), None)
        if found is None:
            self.others.append(place)
            return
        opened.place, before = found + 1, ops[found]
        self.compared += len(digests)
        for output, (own, again) in enumerate(zip(before.digests, digests)):
            if own != again:
                values = before.values
                pair = None if values is None else (values[output], as_array(outputs[output]))
                where = replace(before.place, block=opened.region.block)
                self.differing.append(Differing(where, output, pair))

    def _entered(self, path: str, module: torch.nn.Module) -> None:
        for opened in self._open:
            if path not in opened.modules:
                opened.modules[path] = module
                opened.begin |= module_state(path, module)
            if not opened.is_again and len(self.paths.running) == opened.depth:
                opened.region.entered.append(path)

    @contextmanager
    def _running(self, region: Region, is_again: bool) -> Iterator[None]:
        with self.paths.as_at(region.running):
            opened = _Open(region, is_again, len(region.running))
            opened.begin = surrounding_state(self._make)
            self._open.append(opened)
            try:
                yield
            finally:
                self._open.remove(opened)
                self._close(opened)

    def _close(self, opened: _Open) -> None:
        """Note what moved while the region ran, and what it was when the forward began."""
        end = surrounding_state(self._make)
        for path, module in opened.modules.items():
            end |= module_state(path, module)
        moved = {key for key, value in opened.begin.items() if end.get(key) != value}
        region = opened.region
        if not opened.is_again:
            region.begin, region.moved = opened.begin, moved
            for key in opened.begin:
                if key in moved:
                    self._tell(key, region, None, False)
            return
        for key, value in opened.begin.items():
            is_own = key in region.moved or key[0] in (ATTRIBUTE, BUFFER)
            if is_own and (key in moved or region.begin.get(key, value) != value):
                self._tell(key, region, value, key in moved)

    def _tell(self, key: Key, region: Region, again: object, is_again: bool) -> None:
        kind, name = key
        before = self.moved.get(key)
        own = region.begin.get(key)
        is_apart = again is not None and own != again
        is_told = is_apart and kind in (ATTRIBUTE, GLOBAL) and _is_short(own, again)
        values = (repr(own), repr(again)) if is_told else None
        # What PyTorch draws while it computes again is set back by the checkpoint itself.
        is_again = is_again and key != (RANDOM, TORCH)
        self.moved[key] = Moved(
            kind,
            name,
            tuple(dict.fromkeys((*(before.blocks if before else ()), region.block))),
            key in region.moved or (before is not None and before.is_moved),
            is_again or (before is not None and before.is_moved_again),
            is_apart or (before is not None and before.is_apart),
            (before.values if before else None) or values,
        )

    def _checkpoints(self) -> tuple[Any, Any]:
        """What runs in place of PyTorch's generator and function; each call is a region."""
        generator, older = THEIRS

        def watched(function: Callable[..., Any], *settings: Any, **keywords: Any) -> Any:
            region = self._another()

            def again(*arguments: Any, **named: Any) -> Any:
                with self._running(region, is_again=True):
                    return function(*arguments, **named)

            theirs = generator(again, *settings, **keywords)
            next(theirs)
            try:
                with self._running(region, is_again=False):
                    yield
            except BaseException as error:
                theirs.throw(error)
                raise
            yield from theirs

        class Watched:
            @staticmethod
            def apply(function: Callable[..., Any], *arguments: Any) -> Any:
                region = self._another()

                def run(*given: Any) -> Any:
                    is_again, region.is_begun = region.is_begun, True
                    with self._running(region, is_again):
                        return function(*given)

                return older.apply(run, *arguments)

        return watched, Watched

    def _another(self) -> Region:
        self.regions.append(Region(len(self.regions) + 1, list(self.paths.running)))
        return self.regions[-1]


def _computes_nothing(func: Any) -> bool:
    """A view of what it is given, or memory that nothing is written to."""
    name = func.overloadpacket.__name__
    infos = [returned.alias_info for returned in func._schema.returns]
    is_view = any(info is not None and not info.is_write for info in infos)
    return is_view or name.startswith(("empty", "new_empty", "resize"))


def _is_short(*values: object) -> bool:
    return all(isinstance(value, int | float | str) and len(repr(value)) < 40 for value in values)
