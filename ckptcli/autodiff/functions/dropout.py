"""Dropout: a random leaf times x, as in Burn.

The leaf's values follow from its key alone (`ckptcli.backends.random_keys`).

Source: Burn 0.22.1, `burn-nn/src/modules/dropout.rs`.
"""

from __future__ import annotations

from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import EngineError


@operation()
def dropout(x: Tensor, probability: float) -> Tensor:
    """Each element with this probability replaced by 0, the others scaled by 1 / (1 - it).

    Without autodiff, or with probability 0, the tensor itself.

    Raises:
        EngineError: the probability is not in [0, 1).
    """
    if not 0.0 <= probability < 1.0:
        raise EngineError(f"dropout needs a probability from 0 to below 1, got {probability}")
    if probability == 0.0 or not x.device.is_autodiff:
        return x
    kept = x.device.bernoulli(x.shape, 1.0 - probability, x.dtype)
    return (x * kept).mul_scalar(1.0 / (1.0 - probability))
