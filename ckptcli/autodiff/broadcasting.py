"""Undoing a broadcast in the backward pass."""

from __future__ import annotations

from typing import Any

from ckptcli.backends.base import Namespace


def sum_to(namespace: Namespace, gradient: Any, shape: tuple[int, ...]) -> Any:
    """`gradient` summed over the axes that broadcasting from `shape` added or stretched."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    for axis in range(gradient.ndim):
        if axis < extra or (shape[axis - extra] == 1 and gradient.shape[axis] != 1):
            gradient = namespace.sum_dim(gradient, axis)
    return namespace.reshape(gradient, shape)


def unbroadcast(
    namespace: Namespace, gradients: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...]
) -> tuple[Any, ...]:
    """Each operand's gradient summed to the operand's shape; a matrix keeps its last two axes."""
    return tuple(
        None if gradient is None else sum_to(namespace, gradient, shape)
        for gradient, shape in zip(gradients, shapes)
    )
