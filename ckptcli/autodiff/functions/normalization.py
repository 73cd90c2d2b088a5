"""Normalisation over the last dim, and over everything but the channels.

Source: Burn 0.22.1, `burn-nn/src/modules/norm`, `burn-backend/src/backend/ops/modules`.
"""

from __future__ import annotations

import math

from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import ShapeError


def _last(x: Tensor, parameter: Tensor) -> Tensor:
    """A parameter of the last dim in the rank of x."""
    return parameter.reshape([*[1] * (len(x.shape) - 1), parameter.shape[0]])


def _channels(x: Tensor, name: str) -> int:
    """The size of dim 1.

    Raises:
        ShapeError: there is none.
    """
    if len(x.shape) < 2:
        raise ShapeError(
            f"`{name}` needs x of rank 2 or more, channels second, got {list(x.shape)}"
        )
    return x.shape[1]


@operation()
def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor | None = None, epsilon: float = 1e-5
) -> Tensor:
    """Mean 0 and variance 1 over the last dim, times gamma, plus beta."""
    centred = x - x.mean_dim(-1)
    variance = (centred * centred).mean_dim(-1)
    normal = centred / variance.add_scalar(epsilon).sqrt()
    scaled = normal * _last(x, gamma)
    return scaled if beta is None else scaled + _last(x, beta)


@operation()
def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-5) -> Tensor:
    """x divided by the root of its mean square over the last dim, times gamma."""
    root = (x * x).mean_dim(-1).add_scalar(epsilon).sqrt()
    return x / root * _last(x, gamma)


@operation()
def batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, epsilon: float = 1e-5
) -> Tensor:
    """Each channel (dim 1) by the statistics given, as in inference."""
    shape = [1, _channels(x, "batch_norm"), *[1] * (len(x.shape) - 2)]
    scale, shift, centre, spread = (each.reshape(shape) for each in (gamma, beta, mean, variance))
    root = spread.add_scalar(epsilon).sqrt()
    return (x - centre) / root * scale + shift


@operation()
def batch_norm_train(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Each channel (dim 1) by its own statistics; running statistics are not kept."""
    channels = _channels(x, "batch_norm_train")
    rest = math.prod(x.shape) // max(1, channels)
    shape = [1, channels, *[1] * (len(x.shape) - 2)]

    def over_the_rest(values: Tensor) -> Tensor:
        return values.swap_dims(0, 1).reshape([channels, rest]).mean_dim(1).reshape(shape)

    mean = over_the_rest(x)
    centred = x - mean
    variance = over_the_rest(centred * centred)
    return batch_norm(x, gamma, beta, mean, variance, epsilon)
