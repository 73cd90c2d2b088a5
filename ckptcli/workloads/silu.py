"""The silu network: h = silu(h @ w_i) for each layer, loss = sum(h).

Each layer names its values: `p` (pre-activation), `s` (sigmoid), `h` (layer output).

Weights are drawn in order from Normal(0, 1/sqrt(n)), then the input from Uniform[0, 1), in float64
from PCG64(seed) on the host, and cast: one seed means one network on every backend and dtype. The
input needs no gradient.

Source: the seed document's experiment program; layer and node order as in Burn 0.22.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.regions import checkpoint_name
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends.dtypes import DTYPES
from ckptcli.errors import UsageError
from ckptcli.options.points import whole
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.base import ForwardResult, Workload
from ckptcli.workloads.registry import workload

if TYPE_CHECKING:
    from ckptcli.workloads.graph_case import GraphCase


class SiluNetwork:
    """Parameters and input of the silu network on a device."""

    def __init__(self, weights: list[Tensor], x: Tensor) -> None:
        self.weights = weights
        self.x = x

    def forward(self) -> ForwardResult:
        h = self.x
        for layer in self.x.device.layers(len(self.weights)):
            p = checkpoint_name(h.matmul(self.weights[layer]), "p")
            del h  # from here on it lives only where it is saved
            s = checkpoint_name(p.sigmoid(), "s")
            h = checkpoint_name(p * s, "h")
            del p, s
        return ForwardResult(h.sum(), {f"w{i}": weight for i, weight in enumerate(self.weights)})


class SiluWorkload(Workload):
    """The silu network with `layers` weights of n x n and an input of batch x n."""

    def __init__(
        self,
        layers: int = 8,
        n: int = 1024,
        batch: int | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        self.layers = layers
        self.n = n
        self.batch = n if batch is None else batch
        self.dtype = dtype
        self.seed = seed

    @property
    def title(self) -> str:
        batch = "" if self.batch == self.n else f", batch = {self.batch}"
        return f"n = {self.n}, layers = {self.layers}{batch}"

    @property
    def layer_count(self) -> int:
        return self.layers

    @property
    def settings(self) -> dict[str, object]:
        return {
            "name": "silu",
            "layers": self.layers,
            "n": self.n,
            "batch": self.batch,
            "dtype": self.dtype,
        }

    @property
    def shown_parameter(self) -> str:
        """The first weight, as in the seed's experiment."""
        return "w0"

    @cached_property
    def arrays(self) -> tuple[list[Any], Any]:
        """The weights and the input on the host, drawn once for all strategies."""
        rng = np.random.Generator(np.random.PCG64(self.seed))
        scale = 1.0 / np.sqrt(self.n)
        host = DTYPES[self.dtype].host
        weights = [
            rng.normal(0.0, scale, (self.n, self.n)).astype(host, copy=False)
            for _ in range(self.layers)
        ]
        return weights, rng.random((self.batch, self.n)).astype(host, copy=False)

    def load(self, device: Device) -> SiluNetwork:
        weights, x = self.arrays
        leaves = [
            device.tensor(weight, self.dtype, copy=False).require_grad() for weight in weights
        ]
        return SiluNetwork(leaves, device.tensor(x, self.dtype, copy=False))

    @property
    def shrink_hint(self) -> str:
        return "use a smaller --n, --batch or --layers"

    def parameters(self) -> dict[str, Any]:
        weights, _ = self.arrays
        return {f"w{i}": weight for i, weight in enumerate(weights)}

    def with_parameters(self, arrays: Mapping[str, Any]) -> SiluWorkload:
        other = SiluWorkload(self.layers, self.n, self.batch, self.dtype, self.seed)
        other.arrays = ([arrays[f"w{i}"] for i in range(self.layers)], self.arrays[1])
        return other

    def as_graph(self) -> GraphCase:
        from ckptcli.workloads.graph_case import GraphCase, OpCall

        weights, x = self.arrays
        calls = [
            OpCall("leaf", (), {}, weight.astype(np.float64), requires_grad=True)
            for weight in weights
        ]
        calls.append(OpCall("leaf", (), {}, x.astype(np.float64)))
        for layer in range(self.layers):
            p = len(calls)
            calls += [
                OpCall("matmul", (p - 1, layer), {}),
                OpCall("sigmoid", (p,), {}),
                OpCall("mul", (p, p + 1), {}),
            ]
        calls.append(OpCall("sum", (len(calls) - 1,), {}))
        return GraphCase(self.title, 0, tuple(calls), len(calls) - 1, None)

    @property
    def loaded_bytes(self) -> int:
        element_bytes = DTYPES[self.dtype].element_bytes
        return (self.layers * self.n + self.batch) * self.n * element_bytes

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        """Parameters, input, and what is live beside them in the steps that need most.

        Under any strategy: in layer 1 the product's step (the gradients of p and of all weights)
        and the one before it (p, s, the gradients of h and of s; h's takes nothing in the last
        layer). In the last layer `none` has p, s and h of all layers, its own h aside, and
        `balanced` p of all layers. Where gradients are consumed there is that of one weight at a
        time, in the product's step of any other layer beside the gradients of p and h.
        """
        element_bytes = DTYPES[self.dtype].element_bytes
        weight = self.n * self.n * element_bytes
        activation = self.batch * self.n * element_bytes
        layers = self.layers
        kept = 0 if self.consumes else layers - 1
        live = [
            activation + (1 + kept) * weight,
            (3 if layers == 1 else 4) * activation + kept * weight,
        ]
        if layers > 1:
            live.append(2 * activation + weight)
        if "none" in strategies:
            live += [3 * layers * activation, (3 * layers - 2) * activation + weight]
        if "balanced" in strategies:
            live += [(layers + 2) * activation, layers * activation + weight]
        return layers * weight + activation + max(live)


@workload("silu", "layers", "n", "batch", "dtype", "seed")
def open_silu(argument: str, options: WorkloadOptions) -> list[Workload]:
    """`silu`: the silu network of the options.

    Raises:
        UsageError: an argument after the name.
    """
    if argument:
        raise UsageError(
            f"workload `silu` takes no argument, got `{argument}`", "use --layers, --n"
        )
    dtype = options.dtype or "float32"
    batch = None if options.batch is None else whole(options.batch)
    return [SiluWorkload(whole(options.layers), whole(options.n), batch, dtype, options.seed)]
