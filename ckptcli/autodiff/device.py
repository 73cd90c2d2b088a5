"""The device: where tensors live, whether they are tracked, and by which strategy.

Source: Burn 0.22.1, `Device::autodiff` and `Device::gradient_checkpointing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptcli.autodiff.tensor import Tensor, new_leaf
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.errors import DeviceError
from ckptcli.events import Sink
from ckptcli.graph import Node, fresh_node_ids, process_node_ids


class Device:
    """An array backend, with or without autodiff.

    Attributes:
        backend: the array library.
        namespace: the backend's functions, which ops call.
        is_autodiff: whether tensors have nodes on a tape.
        strategy: the checkpointing strategy; decides nothing without autodiff.
        sink: who watches the engine; None for nobody.
        node_ids: the numbering that tensors on the tape share.
        next_id: takes the next node id; without autodiff there are none to take.
        recomputes: the strategy's decision, bound once.
    """

    __slots__ = (
        "backend",
        "is_autodiff",
        "namespace",
        "next_id",
        "node_ids",
        "recomputes",
        "sink",
        "strategy",
    )

    def __init__(
        self,
        backend: Backend,
        strategy: Strategy | None = None,
        sink: Sink | None = None,
        node_ids: Callable[[], int] = process_node_ids,
    ) -> None:
        self.backend = backend
        self.namespace = backend.namespace
        self.is_autodiff = strategy is not None
        self.strategy: Strategy = NoCheckpointing() if strategy is None else strategy
        self.sink = sink
        self.node_ids = node_ids
        self.next_id = node_ids if self.is_autodiff else _no_id
        self.recomputes: Callable[[Node], bool] = self.strategy.recomputes

    def autodiff(self) -> Device:
        """The same device with a tape, without checkpointing.

        Raises:
            DeviceError: the device has one already.
        """
        if self.is_autodiff:
            raise DeviceError("Only first-order autodiff is supported", "call `autodiff()` once")
        return Device(self.backend, NoCheckpointing(), self.sink, self.node_ids)

    def gradient_checkpointing(self, strategy: Strategy | None = None) -> Device:
        """The same device under a checkpointing strategy, `balanced` if none is given.

        Raises:
            DeviceError: the device has no autodiff.
        """
        if not self.is_autodiff:
            raise DeviceError(
                "Gradient checkpointing requires autodiff; "
                "use Device::autodiff().gradient_checkpointing()"
            )
        chosen = BalancedCheckpointing() if strategy is None else strategy
        return Device(self.backend, chosen, self.sink, self.node_ids)

    def watched_by(self, sink: Sink | None, backend: Backend | None = None) -> Device:
        """The same device with node ids from 0, watched by `sink`."""
        strategy = self.strategy if self.is_autodiff else None
        return Device(backend or self.backend, strategy, sink, fresh_node_ids())

    def inner(self) -> Device:
        """The same device without autodiff."""
        return Device(self.backend, None, self.sink, self.node_ids)

    def check_autodiff(self, what: str) -> None:
        """Raise `DeviceError` unless the device has a tape."""
        if not self.is_autodiff:
            raise DeviceError(
                f"{what} needs a tape, but {self} has none", "create the tensor on `.autodiff()`"
            )

    def tensor(self, data: Any, dtype: str | None = None) -> Tensor:
        """An untracked leaf. A scalar becomes shape (1,); numbers without a dtype, float32.

        Raises:
            DtypeError: a dtype other than float32 and float64.
        """
        return new_leaf(self.backend.asarray(data, dtype), self, tracked=0)

    def __repr__(self) -> str:
        if not self.is_autodiff:
            return f"Device<{self.backend.label}>"
        return (
            f"Device<Autodiff {{ device: {self.backend.label}, "
            f"checkpointing: {self.strategy.label} }}>"
        )


def _no_id() -> int:
    return -1


def device(name: str = "numpy") -> Device:
    """The device of an array backend, without autodiff.

    Raises:
        UnknownNameError: there is no such backend.
    """
    return Device(open_backend(name))


def common_device(lhs: Tensor, rhs: Tensor) -> Device:
    """The device of an op on two tensors whose devices are different objects.

    Raises:
        DeviceError: the devices differ in backend, tape or strategy.
    """
    left, right = lhs.device, rhs.device
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
    return left
