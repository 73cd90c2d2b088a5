"""`trg`: ln Z per spin of the 2D Ising model by the tensor renormalisation group.

The one parameter is the inverse temperature beta; the loss is lnZ/N of N = 2^steps spins on a
torus, its gradient minus the energy per spin. Steps are the network's layers. Here recomputing is
no harmless matter: a decomposition that comes back with other signs makes a wrong gradient
(`docs/when-checkpointing-changes-the-gradient.md`).

Source: `trg_tensors`; the second seed document's experiment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.dtypes import DTYPES
from ckptcli.errors import UsageError
from ckptcli.options.points import number, whole
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.base import ByHand, Exact, ForwardResult, Workload
from ckptcli.workloads.ising import exact_values
from ckptcli.workloads.registry import workload
from ckptcli.workloads.trg_by_hand import kept_by_hand
from ckptcli.workloads.trg_tensors import (
    EVEN,
    MOST_BETA,
    initial_tensor,
    kept_ranks,
    renormalised,
    trace,
)

FIRST_SIZE = 2
"""Of the tensor of one spin."""

NAMES_INSIDE, NAMES_AFTER, BUILTIN = "names-inside", "names-after", "builtin"
"""What the svd is in JAX: with names on what its rule keeps, with names on what it returns, or with
JAX's own rule. ckpt's svd has its one name on the value that both are.
"""

MOST_STEPS = 1000
"""Beyond 1023 steps 2^-steps is no normal number; the value has long converged."""


class TrgNetwork:
    """beta and a constant mask on a device."""

    def __init__(self, beta: Tensor, even: Tensor, ranks: Sequence[int], eps: float) -> None:
        self.beta = beta
        self.even = even
        self.ranks = ranks
        self.eps = eps

    def tensor(self) -> Tensor:
        """T_0, of one spin."""
        return initial_tensor(self.beta, self.even)

    def forward(self) -> ForwardResult:
        """lnZ/N = sum of 2^-n ln(norm of T_n), and 2^-steps ln(trace of the last tensor)."""
        t = self.tensor()
        total = None
        for step in self.beta.device.layers(len(self.ranks)):
            t, log_norm = renormalised(t, self.ranks[step], self.eps)
            weighted = log_norm * 2.0**-step
            total = weighted if total is None else total + weighted
            del log_norm, weighted
        last = trace(t).log() * 2.0 ** -len(self.ranks)
        return ForwardResult(last if total is None else total + last, {"beta": self.beta})


@dataclass(frozen=True)
class TrgWorkload(Workload):
    """`steps` steps that keep at most `chi` singular values, at inverse temperature `beta`.

    `jax_svd` says what the svd is in JAX alone; nothing else looks at it.
    """

    steps: int = 20
    chi: int = 16
    beta: float = 0.3
    svd_eps: float = 1e-12
    dtype: str = "float64"
    jax_svd: str = NAMES_INSIDE
    consumes: bool = False
    replays: bool = False

    @property
    def title(self) -> str:
        broadened = "" if self.svd_eps == 1e-12 else f", svd eps = {self.svd_eps:g}"
        other = "" if self.jax_svd == NAMES_INSIDE else f", svd in JAX = {self.jax_svd}"
        return f"steps = {self.steps}, chi = {self.chi}, beta = {self.beta:g}{broadened}{other}"

    @property
    def layer_count(self) -> int:
        return self.steps

    def layer_name(self, layer: int) -> str:
        return f"step {layer + 1}"

    @property
    def settings(self) -> dict[str, object]:
        return {
            "name": "trg",
            "steps": self.steps,
            "chi": self.chi,
            "beta": self.beta,
            "svd_eps": self.svd_eps,
            "dtype": self.dtype,
            "loss_name": "lnZ/N",
            **({} if self.jax_svd == NAMES_INSIDE else {"jax_svd": self.jax_svd}),
        }

    @property
    def ranks(self) -> list[int]:
        """How many singular values each step keeps."""
        return kept_ranks(self.steps, self.chi)

    @property
    def exact(self) -> Exact | None:
        return exact_values(self.beta, self.steps)

    @property
    def by_hand(self) -> ByHand:
        return kept_by_hand(self.ranks, DTYPES[self.dtype].element_bytes)

    def load(self, device: Device) -> TrgNetwork:
        beta = device.tensor([self.beta], self.dtype).require_grad()
        even = device.tensor(np.reshape(EVEN, (2, 2, 2, 2)), self.dtype)
        return TrgNetwork(beta, even, self.ranks, self.svd_eps)

    @property
    def shrink_hint(self) -> str:
        return "use a smaller --chi or fewer --steps"

    def parameters(self) -> dict[str, Any]:
        return {"beta": np.array([self.beta], DTYPES[self.dtype].host)}

    def with_parameters(self, arrays: Mapping[str, Any]) -> TrgWorkload:
        return replace(self, beta=float(arrays["beta"][0]))

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        """Both decompositions of the largest step, packed; of all steps under `none`."""
        item_bytes = DTYPES[self.dtype].element_bytes
        sizes = [FIRST_SIZE, *self.ranks][: self.steps]
        packed = [2 * (2 * size**2 + 1) * size**2 * item_bytes for size in sizes]
        return sum(packed) if "none" in strategies else max(packed, default=0)


@workload("trg", "steps", "chi", "beta", "svd_eps", "jax_svd", "dtype")
def open_trg(argument: str, options: WorkloadOptions) -> list[Workload]:
    """`trg`: the workload of the options.

    Raises:
        UsageError: an argument after the name, or a value that the program does not take.
    """
    if argument:
        raise UsageError(
            f"workload `trg` takes no argument, got `{argument}`", "use --steps, --chi, --beta"
        )
    beta, eps, steps = number(options.beta), number(options.svd_eps), whole(options.steps)
    _check("beta", beta, f"above 0 and at most {MOST_BETA:g}", 0.0 < beta <= MOST_BETA)
    _check("svd-eps", eps, "0 or a positive number", 0.0 <= eps < math.inf)
    _check("steps", steps, f"from 1 to {MOST_STEPS}", 1 <= steps <= MOST_STEPS)
    dtype = options.dtype or "float64"
    return [TrgWorkload(steps, whole(options.chi), beta, eps, dtype, options.jax_svd)]


def _check(option: str, value: object, needed: str, holds: bool) -> None:
    if not holds:
        raise UsageError(f"--{option} is {value}", f"it has to be {needed}")
