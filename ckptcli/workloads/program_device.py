"""The device that a user's program gets: it keeps count of the parameters that the program makes.

Invariant: it computes what the device it is made from computes, with the same ids and draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor, wrap
from ckptcli.backends.base import Backend
from ckptcli.backends.one_dtype import OneDtypeBackend


class ProgramDevice(Device):
    """A device that notes each leaf that requires a gradient, by its number from 0.

    Attributes:
        leaves: these leaves, in the order of their `require_grad()`.
        layer_count: the most layers that the program has gone through with one `layers()`.
    """

    __slots__ = ("_numbers", "_values", "layer_count", "leaves")

    def __init__(self, device: Device, dtype: str | None, values: Mapping[int, Any]) -> None:
        """`dtype` is that of every tensor, None leaves it to the program.

        `values` are arrays that leaves have instead of the program's own, by number.
        """
        backend = device.backend
        if dtype is not None:
            backend = cast(Backend, OneDtypeBackend(backend, dtype))
        super().__init__(backend, device.strategy, device.sink, device.node_ids, device.keys)
        self.handles = device.handles
        self.leaves: list[Tensor] = []
        self.layer_count = 0
        self._values = values
        self._numbers: dict[int, int] = {}

    def tracked_leaf(self, leaf: Tensor) -> Tensor:
        """One leaf for each node: asked again, the one of before."""
        number = self._numbers.setdefault(leaf.node.id, len(self.leaves))
        if number < len(self.leaves):
            return self.leaves[number]
        if number in self._values:
            value = self.backend.asarray(self._values[number], leaf.dtype, copy=False)
            leaf = wrap(value, leaf.node, self)
        self.leaves.append(super().tracked_leaf(leaf))
        return self.leaves[number]

    def forget_leaves_from(self, number: int) -> None:
        """Forget the leaves from this number on, as if they had not been made."""
        del self.leaves[number:]
        self._numbers = {leaf.node.id: place for place, leaf in enumerate(self.leaves)}

    def layers(self, count: int) -> Iterable[int]:
        self.layer_count = max(self.layer_count, count)
        return super().layers(count)
