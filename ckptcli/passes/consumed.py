"""The second half of a pass that consumes its gradients: each is handed over once it is complete.

Whoever looks at gradients afterwards gets copies that no ledger counts; a pass that is timed keeps
no more than it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ckptcli.autodiff.gradients import Gradients
from ckptcli.autodiff.tensor import Tensor
from ckptcli.workloads.base import ForwardResult


def copied(result: ForwardResult) -> Gradients:
    """A copy of every gradient, taken as it is handed over."""
    taken: dict[int, Any] = {}

    def take(node_id: int, gradient: Tensor) -> None:
        taken[node_id] = deepcopy(gradient.value)

    result.root.backward(take)
    return Gradients(taken, result.root.device.inner())


def keeping(name: str | None) -> Callable[[ForwardResult], Gradients]:
    """The second half that lets go of every gradient but that of the parameter with this name."""

    def backward(result: ForwardResult) -> Gradients:
        kept = None if name is None else result.parameters.get(name)
        kept_id = -1 if kept is None else kept.node.id
        taken: dict[int, Any] = {}

        def take(node_id: int, gradient: Tensor) -> None:
            if node_id == kept_id:
                taken[node_id] = gradient.value

        result.root.backward(take)
        return Gradients(taken, result.root.device.inner())

    return backward
