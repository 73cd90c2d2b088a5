"""The device: where tensors live, whether they are tracked, and by which strategy.

Source: Burn 0.22.1, `Device::autodiff` and `Device::gradient_checkpointing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ckptcli.autodiff.draws import random_tensor
from ckptcli.autodiff.tensor import Tensor, new_leaf, wrap
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.backends.random_keys import Distribution, KeyStream
from ckptcli.checkpoint.policies import Policy
from ckptcli.checkpoint.region_plan import let_go
from ckptcli.checkpoint.regions import Region
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import DeviceError, OperandError
from ckptcli.events import LayersEnded, LayerStarted, RegionOpened, Sink
from ckptcli.graph import Answer, Node, fresh_node_ids, leaf_node, process_node_ids


class Device:
    """An array backend, with or without autodiff.

    Attributes:
        backend: the array library.
        namespace: the backend's functions, which ops call.
        is_autodiff: whether tensors have nodes on a tape.
        strategy: the checkpointing strategy; decides nothing without autodiff.
        sink: who watches the engine; None for nobody.
        handles: of a watched pass, told of each tensor that is put into the user's hands, to refer
            to it weakly and see when they let go of it; None for nobody.
        node_ids: the numbering that tensors on the tape share.
        keys: the stream of random keys that devices made from this one share.
        next_id: takes the next node id; without autodiff there are none to take.
        region: the region that is open now, if one is.
        recomputes: decides for each node: the open region, or else the strategy.
    """

    __slots__ = (
        "backend",
        "handles",
        "is_autodiff",
        "keys",
        "namespace",
        "next_id",
        "node_ids",
        "recomputes",
        "region",
        "sink",
        "strategy",
    )

    def __init__(
        self,
        backend: Backend,
        strategy: Strategy | None = None,
        sink: Sink | None = None,
        node_ids: Callable[[], int] = process_node_ids,
        keys: KeyStream | None = None,
    ) -> None:
        self.backend = backend
        self.namespace = backend.namespace
        self.is_autodiff = strategy is not None
        self.strategy: Strategy = NoCheckpointing() if strategy is None else strategy
        self.sink = sink
        self.handles: Callable[[Tensor], None] | None = None
        self.node_ids = node_ids
        self.keys = KeyStream() if keys is None else keys
        self.next_id = node_ids if self.is_autodiff else _no_id
        self.recomputes: Callable[[Node], Answer] = self.strategy.recomputes
        self.region: Region | None = None

    def autodiff(self) -> Device:
        """The same device with a tape, without checkpointing.

        Raises:
            DeviceError: the device has one already.
        """
        if self.is_autodiff:
            raise DeviceError("Only first-order autodiff is supported", "call `autodiff()` once")
        return Device(self.backend, NoCheckpointing(), self.sink, self.node_ids, self.keys)

    def gradient_checkpointing(self, strategy: Strategy | str | None = None) -> Device:
        """The same device under a checkpointing strategy or its name, by default `balanced`.

        Raises:
            DeviceError: the device has no autodiff.
            UnknownNameError: no strategy has this name.
        """
        if not self.is_autodiff:
            raise DeviceError(
                "Gradient checkpointing requires autodiff; "
                "use Device::autodiff().gradient_checkpointing()"
            )
        if isinstance(strategy, str):
            strategy = parse_strategy(strategy)
        chosen = BalancedCheckpointing() if strategy is None else strategy
        return Device(self.backend, chosen, self.sink, self.node_ids, self.keys)

    def watched_by(
        self,
        sink: Sink | None,
        backend: Backend | None = None,
        handles: Callable[[Tensor], None] | None = None,
    ) -> Device:
        """The same device with node ids and random draws from 0, watched by `sink`; `handles` is
        told of each tensor.
        """
        strategy = self.strategy if self.is_autodiff else None
        keys = KeyStream(self.keys.value)
        watched = Device(backend or self.backend, strategy, sink, fresh_node_ids(), keys)
        watched.handles = handles
        return watched

    def inner(self) -> Device:
        """The same device without autodiff."""
        return Device(self.backend, None, self.sink, self.node_ids, self.keys)

    def open_region(self, name: str, policy: Policy) -> Region:
        """Begin a region: ops on this device belong to it until it is closed. Under a strategy
        that heeds none they go on belonging to nothing.
        """
        if not self.strategy.opens_regions:
            return Region(name, policy, None)
        self.region = Region(name, policy, self.region)
        self.recomputes = self.region.recomputes
        if self.sink is not None:
            self.sink.emit(RegionOpened(name, self.region.depth, policy))
        return self.region

    def close_region(self, region: Region) -> None:
        """End the region that was opened last."""
        if not self.strategy.opens_regions:
            return
        assert region is self.region, "regions are closed in the order in which they were opened"
        self.region = region.parent
        region.end()
        if self.sink is not None:
            self.sink.emit(region.closed())
        if region.parent is None:
            self.recomputes = self.strategy.recomputes
            region.close(let_go, self.namespace.to_host)
        else:
            self.recomputes = region.parent.recomputes

    def layers(self, count: int) -> Iterable[int]:
        """0 to count - 1, with the strategy's regions opened and closed on the way."""
        groups = self.strategy.layer_regions(count)
        layers = range(count) if groups is None else self._layers_in_regions(groups)
        return layers if self.sink is None else _told(layers, count, self.sink)

    def _layers_in_regions(self, groups: Sequence[LayerRegion]) -> Iterator[int]:
        layer = 0
        for group in groups:
            region = None
            if group.policy is not None:
                name = f"layers {layer} to {layer + group.size - 1}"
                region = self.open_region(name, group.policy)
            try:
                for _ in range(group.size):
                    yield layer
                    layer += 1
            finally:
                if region is not None:
                    self.close_region(region)

    def check_autodiff(self, what: str) -> None:
        """Raise `DeviceError` unless the device has a tape."""
        if not self.is_autodiff:
            raise DeviceError(
                f"{what} needs a tape, but {self} has none", "create the tensor on `.autodiff()`"
            )

    def tensor(self, data: Any, dtype: str | None = None, *, copy: bool = True) -> Tensor:
        """An untracked leaf. A scalar becomes shape (1,); numbers without a dtype, float32.

        The values are copied, so that changing `data` later changes nothing here. With
        `copy=False` they are not, and must not be changed while the tensor or a graph of it lives.

        Raises:
            DtypeError: a dtype that the backend does not have.
            OperandError: lists of different lengths, or what is no number of the dtype.
        """
        try:
            array = self.backend.asarray(data, dtype, copy)
        except ValueError as error:
            raise OperandError(
                f"a tensor cannot be made of this {type(data).__name__}: {error}",
                "give numbers, in lists of one length at each depth, or an array",
            ) from error
        return new_leaf(array, self, tracked=0)

    def tracked_leaf(self, leaf: Tensor) -> Tensor:
        """The leaf that `require_grad()` gives: the same value and id, with its gradient kept."""
        tensor = wrap(leaf.value, leaf_node(leaf.node.id, 1), self)
        if self.handles is not None:
            self.handles(tensor)
        return tensor

    def seed(self, seed: int) -> None:
        """Begin the random draws again: one seed gives the same draws on every backend.

        Raises:
            EngineError: the seed is negative or over 128 bits.
        """
        self.keys.seed(seed)

    def uniform(
        self, shape: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: str = "float32"
    ) -> Tensor:
        """An untracked leaf of numbers from [low, high)."""
        return random_tensor(self, Distribution("uniform", low, high), tuple(shape), dtype)

    def normal(
        self, shape: Sequence[int], mean: float = 0.0, std: float = 1.0, dtype: str = "float32"
    ) -> Tensor:
        """An untracked leaf of normal numbers."""
        return random_tensor(self, Distribution("normal", mean, std), tuple(shape), dtype)

    def bernoulli(self, shape: Sequence[int], probability: float, dtype: str = "float32") -> Tensor:
        """An untracked leaf of ones, each with this probability, and zeros."""
        return random_tensor(self, Distribution("bernoulli", probability), tuple(shape), dtype)

    def __repr__(self) -> str:
        if not self.is_autodiff:
            return f"Device<{self.backend.label}>"
        return (
            f"Device<Autodiff {{ device: {self.backend.label}, "
            f"checkpointing: {self.strategy.title} }}>"
        )


def _told(layers: Iterable[int], count: int, sink: Sink) -> Iterator[int]:
    """The layers, each announced to `sink`, and the end of the loop, wherever it is left."""
    entered = False
    try:
        for layer in layers:
            entered = True
            sink.emit(LayerStarted(layer, count))
            yield layer
    finally:
        if entered:
            sink.emit(LayersEnded())


def _no_id() -> int:
    return -1


def device(name: str = "numpy", where: str | None = None) -> Device:
    """The device of an array backend, without autodiff.

    `where` is `cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for a GPU if there is one; by default the
    backend's first.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: its library is not installed, or has no such device.
    """
    return Device(open_backend(name, where))


def common_device(lhs: Tensor, rhs: Tensor) -> Device:
    """The device of an op on two tensors whose devices are different objects.

    An open region belongs to one object; the op belongs to the region if either operand does.

    Raises:
        DeviceError: the devices differ in backend, tape or strategy.
    """
    left, right = lhs.device, rhs.device
    if left.is_autodiff and right.is_autodiff and left.node_ids is not right.node_ids:
        raise DeviceError(
            f"operands whose nodes are numbered apart: node {lhs.node.id} and node {rhs.node.id} "
            "come from two `watched_by` devices",
            "create both on the same device",
        )
    if left.is_autodiff != right.is_autodiff or left.backend.label != right.backend.label:
        raise DeviceError(
            f"operands on different devices: {left} and {right}",
            "create both on the same device",
        )
    if left.is_autodiff and left.strategy.label != right.strategy.label:
        raise DeviceError(
            f"Gradient checkpointing strategy mismatch: {left.strategy.label} vs "
            f"{right.strategy.label}. Tensors in the same operation must share a strategy."
        )
    return right if left.region is None else left
