"""The tensor renormalisation group of the 2D Ising model, step by step, on the engine's tensors.

The partition function is a network with one tensor T[r, u, l, d] at each spin. A step splits T in
two ways by a singular value decomposition, keeps the largest singular values, and joins four halves
to one tensor that stands for two. After S steps one tensor stands for 2^S spins.

Source: M. Levin and C. P. Nave, "Tensor renormalization group approach to two-dimensional classical
lattice models", Phys. Rev. Lett. 99, 120601 (2007).
"""

from __future__ import annotations

from ckptcli.autodiff.ops.cat import cat
from ckptcli.autodiff.ops.svd import svd
from ckptcli.autodiff.regions import checkpoint_name
from ckptcli.autodiff.tensor import Tensor

MOST_BETA = 100.0
"""The initial tensor has elements of exp(2 beta); the sum of their squares must be finite."""

EVEN = [0.5 if bin(legs).count("1") % 2 == 0 else 0.0 for legs in range(16)]
"""What the initial tensor is multiplied with, (2, 2, 2, 2): an odd number of legs at 1 gives 0."""


def kept_ranks(steps: int, chi: int) -> list[int]:
    """How many singular values each step keeps: 2, 4, 4, 16, chi, chi, ..., none above `chi`.

    A step never keeps more than the D^2 values that a tensor of size D has. The matrices of the
    first step have rank 2, those of the third rank 4: more would be zeros.
    """
    found, size = [], 2
    for rank in [*(2, 4, 4, 16)[:steps], *[chi] * (steps - 4)]:
        size = min(rank, chi, size * size)
        found.append(size)
    return found


def initial_tensor(beta: Tensor, even: Tensor) -> Tensor:
    """T[r, u, l, d] of one spin, (2, 2, 2, 2), from the inverse temperature, shape (1,).

    sqrt(lam_r lam_u lam_l lam_d) / 2 with lam = (2 cosh beta, 2 sinh beta), where an even number of
    legs is at 1, else 0; `even` is `EVEN` as a tensor.
    """
    root = (cat([beta.cosh(), beta.sinh()], 0) * 2.0).sqrt()
    pair = root.reshape([2, 1]) * root.reshape([1, 2])
    square = pair.reshape([4, 1]) * pair.reshape([1, 4])
    return checkpoint_name(square.reshape([2, 2, 2, 2]) * even, "t")


def renormalised(t: Tensor, rank: int, eps: float) -> tuple[Tensor, Tensor]:
    """One step: T (D, D, D, D) to T' (k, k, k, k) with k = `rank`, and ln of the norm of T, (1,).

    T'[r, u, l, d] = sum of S1[w, a, r] S2[a, b, u] S3[b, g, l] S4[g, w, d]. Values have names: `t`
    for T', `x` for T / norm, `half` for S1 to S4, `joint` for products of two, `svd` for U, s, V.
    """
    size = t.shape[0]
    norm = (t * t).sum().sqrt()
    x = checkpoint_name(t / norm, "x")
    s1, s3 = _halves(x.permute([2, 1, 0, 3]), rank, eps)
    s2, s4 = _halves(x.permute([3, 2, 1, 0]), rank, eps)
    del x
    p = _joined(s1, s2, size, rank)  # (w, r, b, u)
    q = _joined(s3, s4, size, rank)  # (b, l, w, d)
    rows = _joint(p.permute([1, 3, 2, 0]).reshape([rank * rank, size * size]))
    columns = _joint(q.permute([0, 2, 1, 3]).reshape([size * size, rank * rank]))
    del p, q
    return checkpoint_name(rows.matmul(columns).reshape([rank] * 4), "t"), norm.log()


def _halves(x: Tensor, rank: int, eps: float) -> tuple[Tensor, Tensor]:
    """U sqrt(s) and V sqrt(s), (n, rank), of x as a matrix: first against last two dims."""
    n = x.shape[0] * x.shape[1]
    factors = svd(x.reshape([n, n]), rank, eps)
    root = factors[n : n + 1].sqrt()
    return _half(factors[0:n] * root), _half(factors[n + 1 :] * root)


def _joined(left: Tensor, right: Tensor, size: int, rank: int) -> Tensor:
    """Sum over a of left[w, a, r] right[a, b, u], (w, r, b, u), from (n, rank) each."""
    rows = _half(left.reshape([size, size, rank]).permute([0, 2, 1]).reshape([size * rank, size]))
    joint = _joint(rows.matmul(right.reshape([size, size * rank])))
    return joint.reshape([size, rank, size, rank])


def _half(x: Tensor) -> Tensor:
    return checkpoint_name(x, "half")


def _joint(x: Tensor) -> Tensor:
    return checkpoint_name(x, "joint")


def trace(t: Tensor) -> Tensor:
    """Sum over i, j of t[i, j, i, j], shape (1,): the last tensor closed to a torus."""
    n = t.shape[0] * t.shape[1]
    return t.reshape([n * n])[slice(None, None, n + 1)].sum()
