"""The gradients of one backward pass.

Invariant: the gradient of an intermediate value is consumed by its step; what stays at the end is
the gradient of each leaf that requires one (and the seed, for an untracked root).

Source: Burn 0.22.1, `burn-autodiff/src/grads.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ckptcli.autodiff.tensor import Tensor, wrap
from ckptcli.graph import leaf_node

if TYPE_CHECKING:
    from ckptcli.autodiff.device import Device


class Gradients:
    """Node id -> gradient."""

    def __init__(self, arrays: dict[int, Any], device: Device) -> None:
        self._arrays = arrays
        self._device = device

    def wrt(self, tensor: Tensor) -> Tensor | None:
        """The gradient with respect to a leaf, on the device without autodiff; None if none."""
        array = self._arrays.get(tensor.node.id)
        return None if array is None else wrap(array, leaf_node(-1, 0), self._device)

    def remove(self, tensor: Tensor) -> Tensor | None:
        """Like `wrt`, and forgets it: an optimiser that consumes a gradient frees its memory."""
        gradient = self.wrt(tensor)
        self._arrays.pop(tensor.node.id, None)
        return gradient

    def node_ids(self) -> Iterator[int]:
        """The nodes that have a gradient, in the order of their ids."""
        return iter(sorted(self._arrays))

    def __len__(self) -> int:
        return len(self._arrays)
