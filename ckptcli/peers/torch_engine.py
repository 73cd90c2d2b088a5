"""PyTorch eager, on the CPU: `torch.utils.checkpoint` for each region, selective for products.

Source: `torch.utils.checkpoint`, with `use_reentrant=False` as its documentation advises.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ckptcli.checkpoint.policies import Policy, described
from ckptcli.checkpoint.policies.base import NoCounterpart
from ckptcli.checkpoint.strategies.base import LayerRegion
from ckptcli.errors import nearest_name
from ckptcli.peers.agreement import TOLERANCES
from ckptcli.peers.base import Again, Measured, NoPeer, Values, program, program_of, register
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload

if TYPE_CHECKING:
    import torch


class AtenOps:
    """The ops of ATen that policies ask for, as `checkpoint.policies.base.TorchOps`."""

    products = frozenset({"mm", "addmm"})
    batched_products = frozenset({"bmm", "baddbmm"})
    convolutions = frozenset({"convolution"})
    compute_bound = frozenset(
        {
            *("mm", "addmm", "bmm", "baddbmm", "convolution", "linalg_cross", "hypot"),
            *("_linalg_svd", "linalg_qr", "_linalg_eigh", "linalg_cholesky_ex"),
            *("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin"),
            *("cumsum", "cumprod", "cummax", "cummin", "sort", "topk"),
            *("avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
            *("max_pool2d_with_indices", "max_pool3d_with_indices"),
            *("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"),
            *("embedding", "gather", "index", "scatter", "scatter_add", "where", "masked_fill"),
            *("_to_copy", "cat", "_fft_r2c", "_fft_c2r", "_fft_c2c", "_ctc_loss"),
            # One op that has products inside.
            *("_scaled_dot_product_flash_attention_for_cpu", "_native_multi_head_attention"),
        }
    )


@register
class TorchEngine:
    """PyTorch eager."""

    name: ClassVar[str] = "torch"
    summary: ClassVar[str] = "PyTorch eager, torch.utils.checkpoint"
    library: ClassVar[str] = "torch"
    extra: ClassVar[str] = "torch"
    programs: ClassVar[str] = "torch"
    waits_for_threads: ClassVar[bool] = True
    copies_arrays: ClassVar[bool] = False

    @property
    def version(self) -> str:
        import torch

        return f"PyTorch {torch.__version__}"

    @property
    def threads(self) -> int | None:
        import torch

        return int(torch.get_num_threads())

    @contextmanager
    def with_threads(self, count: int | None) -> Iterator[str | None]:
        import torch

        before = torch.get_num_threads()
        if count is not None:
            torch.set_num_threads(count)
        try:
            yield None
        finally:
            if count is not None:
                torch.set_num_threads(before)

    def is_out_of_memory(self, error: BaseException) -> bool:
        from ckptcli.backends.torch_backend import is_out_of_memory

        return is_out_of_memory(error)

    def network(self, workload: Workload, regions: Sequence[LayerRegion]) -> TorchNetwork:
        network: TorchNetwork = program_of(self.programs, workload, regions)
        return network


@program("torch", "silu")
class TorchNetwork:
    """The silu network of PyTorch tensors; they share memory with the arrays."""

    splits = True
    untold = ""

    def __init__(self, workload: SiluWorkload, regions: Sequence[LayerRegion]) -> None:
        import torch

        weights, x = workload.arrays
        self.tolerance = TOLERANCES[workload.dtype]
        self.weights = [torch.from_numpy(weight).requires_grad_() for weight in weights]
        self.x = torch.from_numpy(x)
        self._groups = [(region.size, region_caller(region.policy)) for region in regions]

    def forward(self) -> torch.Tensor:
        import torch

        with torch.enable_grad():  # ckpt's own backend may be PyTorch, with its autograd off
            return self._loss(self.weights, _layers)

    def _loss(
        self, weights: Sequence[torch.Tensor], layers: Callable[..., torch.Tensor]
    ) -> torch.Tensor:
        h, first = self.x, 0
        for size, call in self._groups:
            h = call(layers, h, weights[first : first + size])
            first += size
        return h.sum()

    def backward(self, state: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        import torch

        return state, torch.autograd.grad(state, self.weights)

    def check(self, result: Any) -> float | None:
        return float(result[1][0].double().sum())

    def values(self, result: Any) -> Values:
        loss, gradients = result
        return Values(float(loss.detach()), [gradient.numpy() for gradient in gradients])

    def loss_at(self, parameters: Sequence[Any]) -> float:
        import torch

        with torch.no_grad():
            return float(self._loss([torch.from_numpy(array) for array in parameters], _layers))

    def recomputed_values(self) -> Sequence[Again]:
        """A checkpoint runs the layers' own code again, which notes what it makes. What a policy
        saved comes back as the very tensor, and is not computed again.
        """
        import torch

        layers = {id(weight): layer for layer, weight in enumerate(self.weights)}
        made: dict[tuple[int, str], torch.Tensor] = {}
        found: list[Again] = []

        def note(weight: torch.Tensor, name: str, value: torch.Tensor) -> None:
            key, value = (layers[id(weight)], name), value.detach()
            first = made.setdefault(key, value)
            if first.data_ptr() != value.data_ptr():
                found.append(Again(*key, first.numpy(), value.numpy()))

        with torch.enable_grad():
            self.backward(self._loss(self.weights, partial(_noted_layers, note=note)))
        return found

    def packed(self) -> None:
        return None

    def measure(self) -> Measured:
        from ckptcli.peers.torch_ledger import ledger_pass

        counts = ledger_pass(self.forward, self.backward, [*self.weights, self.x])
        own_products = 2 * len(self.weights) - 1  # the input needs no gradient
        recomputed = {
            "matmul": counts.backward_calls["mm"] - own_products,
            "sigmoid": counts.backward_calls["sigmoid"],
        }
        return Measured(counts.memory, {op: n for op, n in recomputed.items() if n}, None)


def _layers(h: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    import torch

    for weight in weights:
        p = h @ weight
        h = p * torch.sigmoid(p)
    return h


def _noted_layers(
    h: torch.Tensor,
    weights: Sequence[torch.Tensor],
    note: Callable[[torch.Tensor, str, torch.Tensor], None],
) -> torch.Tensor:
    """The same ops; `note` gets what each makes, with its weight and the name of the value, at
    once: a recomputation ends as soon as backward has all that it needs.
    """
    import torch

    for weight in weights:
        p = h @ weight
        note(weight, "p", p)
        s = torch.sigmoid(p)
        note(weight, "s", s)
        h = p * s
        note(weight, "h", h)
    return h


def region_caller(policy: Policy | None) -> Callable[..., Any]:
    """How a region under this policy calls what it computes.

    Raises:
        NoPeer: a policy by names, or a function of the user's own.
    """
    from torch.utils.checkpoint import checkpoint

    if policy is None:
        return lambda function, *arguments: function(*arguments)
    try:
        saved_ops = described(policy).in_torch(AtenOps())
    except NoCounterpart as error:
        raise NoPeer(str(error)) from error
    if saved_ops == frozenset():
        return partial(checkpoint, use_reentrant=False)
    return saving_ops(saved_ops)


def saving_ops(saved_ops: frozenset[str] | None) -> Callable[..., Any]:
    """How a region is called that saves what these ops return, all for None."""
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    contexts = partial(create_selective_checkpoint_contexts, _decider(saved_ops))
    return partial(checkpoint, use_reentrant=False, context_fn=contexts)


def aten_ops(patterns: Sequence[str]) -> Iterator[str]:
    """The ops of ATen by their names, in which `*` stands for any letters.

    Raises:
        NoPeer: PyTorch has no op of a name.
    """
    import torch

    known = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
    }
    for pattern in patterns:
        found = fnmatch.filter(known, pattern)
        if not found:
            nearest = nearest_name(pattern, sorted(known))
            meant = f"; did you mean `{nearest}`?" if nearest else ""
            raise NoPeer(f"PyTorch has no op aten.{pattern}{meant}")
        yield from found


def _decider(saved_ops: frozenset[str] | None) -> Callable[..., Any]:
    from torch.utils.checkpoint import CheckpointPolicy

    def decide(ctx: object, op: Any, *arguments: Any, **keywords: Any) -> CheckpointPolicy:
        del ctx, arguments, keywords
        name = op.overloadpacket.__name__
        if saved_ops is None or name in saved_ops:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    return decide
