"""The tensor renormalisation group in functions of a NumPy-like module; no library is imported.

It is the program of `ckptcli.workloads.trg_tensors`, with the same names of values, for libraries
that take gradients themselves. The norm is `sqrt(sum(T * T))` and T is divided by it: which
instructions that becomes, in forward and in a recomputation, is up to the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Svd = Callable[[Any], tuple[Any, Any, Any]]
"""From a square matrix to U, s, V (not its transpose)."""

Named = Callable[[Any, str], Any]
"""Gives a value a name that a policy can save."""

Steps = Callable[[Any], tuple[Any, Sequence[Any]]]
"""Some steps in a row: from a tensor to the one after them, and ln of the norm before each."""


def unnamed(value: Any, name: str) -> Any:
    """For a library without names."""
    return value


def trg_steps(
    xp: Any, svd: Svd, tensor: Any, ranks: Sequence[int], mark: Named = unnamed
) -> tuple[Any, list[Any]]:
    """`Steps` that keep `ranks`, carried out."""
    logarithms = []
    for rank in ranks:
        tensor, logarithm = _step(xp, svd, tensor, rank, mark)
        logarithms.append(logarithm)
    return tensor, logarithms


def _step(xp: Any, svd: Svd, tensor: Any, k: int, mark: Named) -> tuple[Any, Any]:
    d = tensor.shape[0]
    norm = xp.sqrt(xp.sum(tensor * tensor))
    x = mark(tensor / norm, "x")
    ua, sa, va = svd(xp.reshape(xp.transpose(x, (2, 1, 0, 3)), (d * d, d * d)))
    ub, sb, vb = svd(xp.reshape(xp.transpose(x, (3, 2, 1, 0)), (d * d, d * d)))
    qa, qb = xp.sqrt(sa[:k]), xp.sqrt(sb[:k])
    s1, s3 = (xp.reshape(mark(m[:, :k] * qa, "half"), (d, d, k)) for m in (ua, va))
    s2, s4 = (xp.reshape(mark(m[:, :k] * qb, "half"), (d, d, k)) for m in (ub, vb))
    left = mark(xp.tensordot(s1, s2, ((1,), (0,))), "joint")  # w r b u
    right = mark(xp.tensordot(s3, s4, ((1,), (0,))), "joint")  # b l w d
    product = mark(xp.tensordot(left, right, ((2, 0), (0, 2))), "t")  # r u l d
    return product, xp.log(norm)


def trg_value(xp: Any, beta: Any, groups: Sequence[Steps], mark: Named = unnamed) -> Any:
    """lnZ/N for the inverse temperature, a scalar, by all steps, in order, in groups."""
    tensor = mark(_initial(xp, beta), "t")
    logarithms: list[Any] = []
    for steps in groups:
        tensor, terms = steps(tensor)
        logarithms += terms
    total = 0.0
    for step, logarithm in enumerate(logarithms):
        total = total + 2.0**-step * logarithm
    same = np.eye(tensor.shape[0])
    trace = xp.sum(tensor * same[:, None, :, None] * same[None, :, None, :])
    return total + xp.log(trace) * 2.0 ** -len(logarithms)


def _initial(xp: Any, beta: Any) -> Any:
    """T[r, u, l, d] of one spin, of the number of legs that are at 1."""
    legs = np.indices((2, 2, 2, 2)).sum(axis=0)
    even = 2.0 * ((legs + 1) % 2)
    return even * xp.cosh(beta) ** (2 - legs / 2) * xp.sinh(beta) ** (legs / 2)
