"""Another dtype: compute bound.

Source: Burn 0.22.1, `burn-autodiff/src/ops/tensor.rs`.
"""

from __future__ import annotations

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op, no_flop
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound

CAST = Op(
    "cast",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, dtype: xp.astype(x, dtype),
    backward=lambda xp, grad, owned, kept, step: xp.astype(grad, step.state),
    state=lambda xp, out, x, dtype: xp.dtype_name(x),
    flops=no_flop,
)


@operation()
def cast(x: Tensor, dtype: str) -> Tensor:
    """The values in another dtype; the tensor itself where it has that dtype."""
    return x if x.dtype == dtype else cast_always(x, dtype)


def cast_always(x: Tensor, dtype: str) -> Tensor:
    """A node even where the dtype stays, as Burn's backends cast.

    Raises:
        DtypeError: a dtype that a tensor cannot have.
    """
    return unary(CAST, x, x.device.backend.checked_dtype(dtype))
