"""The tensor renormalisation group of the 2D Ising model in traced tensors.

Levin and Nave's scheme with one tensor a spin: a tensor T[r, u, l, d] is normalised, cut by two
SVDs into four of rank 3, and four of these make the next one, for twice the spins. The value is
lnZ/N for N = 2^steps spins, its derivative by the inverse temperature minus the energy a spin.

The operands of an op stand as in the seed's program, so that the histories of checkpoints under
merge rule `copy` have its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ckptcli.traced import Tensor, Tracer, svd, tensordot
from ckptcli.traced.segments import Loop, Segment, prepared


def initial_tensor(beta: Tensor) -> Tensor:
    """The tensor of one spin, (2, 2, 2, 2), from the inverse temperature, shape (1,).

    With c = cosh and s = sinh of beta, an element with p legs of 1 is 2 c^2, 2 c s or 2 s^2 for
    p = 0, 2, 4, and zero for odd p.
    """
    grows, decays = beta.exp(), (-beta).exp()
    c, s = (grows + decays) * 0.5, (grows - decays) * 0.5
    of_legs = [(c * c) * 2.0, (c * s) * 2.0, (s * s) * 2.0]
    legs = [index.bit_count() for index in range(16)]
    parts = [
        value * beta.tracer.constant([float(p == 2 * half) for p in legs], beta.dtype)
        for half, value in enumerate(of_legs)
    ]
    return (parts[0] + parts[1] + parts[2]).reshape((2, 2, 2, 2))


def step(tensor: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The next tensor, (rank, rank, rank, rank), and the logarithm of this one's norm."""
    size = tensor.shape[0]
    norm = (tensor * tensor).sum().sqrt()
    x = tensor / norm
    s1, s3 = _halves(x.permute((2, 1, 0, 3)), size, rank)
    s2, s4 = _halves(x.permute((3, 2, 1, 0)), size, rank)
    upper = tensordot(s1, s2, ((1,), (0,)))  # w r b u
    lower = tensordot(s3, s4, ((1,), (0,)))  # b l w d
    whole = tensordot(upper, lower, ((2, 0), (0, 2)))  # r u l d
    return whole, norm.ln()


def _halves(x: Tensor, size: int, rank: int) -> tuple[Tensor, Tensor]:
    """The two tensors of rank 3 that a matrix of pairs of legs is cut into."""
    u, s, v = svd(x.reshape((size * size, size * size)))
    root = s[:rank].sqrt()
    left = u[:, :rank] * root
    right = v[:, :rank] * root
    return left.reshape((size, size, rank)), right.reshape((size, size, rank))


def ln_trace(tensor: Tensor) -> Tensor:
    """The logarithm of the sum of T[i, j, i, j]."""
    size = tensor.shape[0]
    matrix = tensor.permute((0, 2, 1, 3)).reshape((size * size, size * size))
    return matrix[:: size + 1, :: size + 1].sum().ln()


@dataclass(slots=True)
class Renormalisation:
    """The loop, one step at a time.

    Attributes:
        tensor: T_n.
        sum: the weighted logarithms of the norms so far; None before the first step.
        steps: how many steps are done.
    """

    tensor: Tensor
    sum: Tensor | None = None
    steps: int = 0

    def advance(self, rank: int) -> None:
        """One step."""
        self.tensor, ln_norm = step(self.tensor, rank)
        term = ln_norm * 0.5**self.steps
        self.sum = term if self.sum is None else self.sum + term
        self.steps += 1

    def value(self) -> Tensor:
        """lnZ/N after the steps so far."""
        last = ln_trace(self.tensor) * 0.5**self.steps
        return last if self.sum is None else self.sum + last


def segments(tracer: Tracer, kept: Sequence[int], *, keep_residuals: bool) -> Loop:
    """The same as prepared steps: steps of equal sizes share one program, for every beta."""
    done: dict[tuple[int, int], Segment] = {}
    in_order: list[Segment] = [prepared(tracer, _first_step, (1,), keep_residuals=keep_residuals)]
    size = 2
    for rank in kept:
        if (size, rank) not in done:
            done[size, rank] = prepared(
                tracer, _step_of(rank), (size,) * 4, keep_residuals=keep_residuals
            )
        in_order.append(done[size, rank])
        size = rank
    in_order.append(prepared(tracer, _last_step, (size,) * 4, keep_residuals=keep_residuals))
    weights = [0.0, *(0.5**n for n in range(len(kept))), 0.5 ** len(kept)]
    return Loop(tracer, in_order, weights)


def _first_step(beta: Tensor) -> tuple[Tensor, Tensor]:
    return initial_tensor(beta), beta


def _step_of(rank: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    return lambda tensor: step(tensor, rank)


def _last_step(tensor: Tensor) -> tuple[Tensor, Tensor]:
    return tensor, ln_trace(tensor)
