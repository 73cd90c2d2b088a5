"""Activations that Burn composes: in the order of the ids that their ops take.

The four that are one node each (relu, gelu, sigmoid, log_sigmoid) are in `ops/elementwise.py`.

Source: Burn 0.22.1, `burn-tensor/src/tensor/activation`.
"""

from __future__ import annotations

import math

from ckptcli.autodiff.apply import binary, unary
from ckptcli.autodiff.functions.guarded_steps import (
    EXP_LESS_ONE,
    EXP_TO_COME,
    HALF_OF_ONE_AND_TANH,
    LIMITED_CUBE,
    LOG_OF_ONE_AND_EXP,
)
from ckptcli.autodiff.ops.activation import sigmoid
from ckptcli.autodiff.ops.arithmetic import MUL
from ckptcli.autodiff.ops.cast import cast_always
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import positive_dim
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import EngineError, ShapeError

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_GAMMA = 1.0507009873554804934193349852946


@operation()
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x): two nodes, sigmoid first.

    Burn's gradient at inf is nan; here 1.
    """
    return binary(MUL, x, sigmoid(x))


@operation()
def gelu_approximate(x: Tensor) -> Tensor:
    """Gelu with a hyperbolic tangent in place of the error function.

    Burn's is 0 at -6 in float32, here -8.44e-11; its gradient is nan at 1e20, here 1.
    """
    inner = x + unary(LIMITED_CUBE, x, 3.0) * 0.044715
    share = unary(HALF_OF_ONE_AND_TANH, inner * math.sqrt(2.0 / math.pi))
    return x * share.add_scalar(0.0) * 1.0


@operation()
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else x times the slope."""
    scaled = x.mul_scalar(negative_slope)
    return x.mask_where(x < 0.0, scaled)


@operation()
def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    """x where it is positive, else x times `alpha`: one number, or one for each channel (dim 1).

    Raises:
        ShapeError: `alpha` is neither.
    """
    count, rank = alpha.shape[0], len(x.shape)
    if len(alpha.shape) != 1 or count not in (1, x.shape[min(1, rank - 1)]):
        raise ShapeError(f"`prelu` cannot use alpha {list(alpha.shape)} for {list(x.shape)}")
    shape = [1] * rank
    shape[min(1, rank - 1)] = count
    scaled = x * alpha.reshape(shape)
    return x.mask_where(x < 0.0, scaled)


@operation()
def hard_sigmoid(x: Tensor, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """alpha * x + beta, limited to [0, 1].

    Burn casts to float32 and back, a node each; here neither cast loses precision.
    """
    line = cast_always(x, x.dtype).mul_scalar(alpha).add_scalar(beta)
    return cast_always(line.clamp(0.0, 1.0), x.dtype)


@operation()
def hard_swish(x: Tensor) -> Tensor:
    """x * hard_sigmoid(x), with slope 1 / 6."""
    return x * hard_sigmoid(x, 1.0 / 6.0, 0.5)


@operation()
def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta.

    Burn's is inf at 100 and 0 at -20 in float32, here 100 and 2.06e-9; its gradient is nan at 100,
    here 1.

    Its five nodes: the exponential is taken in that of the logarithm.
    """
    power = unary(EXP_TO_COME, x.mul_scalar(beta))
    return unary(LOG_OF_ONE_AND_EXP, power.add_scalar(0.0)).div_scalar(beta)


@operation()
def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    Burn's gradient is nan at 100 and its value 0 at -20 in float32, here 1 and -4.12e-8.
    """
    return x * softplus(x).tanh()


def _exp_less_one(x: Tensor) -> Tensor:
    """exp(x) - 1 for x <= 0, as Burn's two nodes; for a larger x 0, which is not to be selected."""
    return unary(EXP_LESS_ONE, x).sub_scalar(0.0)


@operation()
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    Burn's gradient is nan at 100 and its value 0 at -1e-8 in float32, here 1 and -1e-8.
    """
    scaled = _exp_less_one(x).mul_scalar(alpha)
    return x.mask_where(x <= 0.0, scaled)


@operation()
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    Burn's gradient is nan at 100 and its value 0 at -1e-8 in float32, here 1 and -1e-8.

    Raises:
        EngineError: `alpha` is not positive.
    """
    if not alpha > 0.0:
        raise EngineError(f"`celu` needs a positive alpha, got {alpha}")
    scaled = _exp_less_one(x.div_scalar(alpha)).mul_scalar(alpha)
    return x.mask_where(x <= 0.0, scaled)


@operation()
def selu(x: Tensor) -> Tensor:
    """The self-normalising elu: gamma * x, or gamma * alpha * (exp(x) - 1).

    Burn's gradient is nan at 100 in float32, here 1.0507.
    """
    positive = x.mul_scalar(SELU_GAMMA)
    negative = _exp_less_one(x).mul_scalar(SELU_ALPHA * SELU_GAMMA)
    return negative.mask_where(x >= 0.0, positive)


@operation()
def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0) -> Tensor:
    """x limited to [min, max]."""
    return x.clamp(min, max)


@operation()
def relu6(x: Tensor) -> Tensor:
    """x limited to [0, 6]."""
    return x.clamp(0.0, 6.0)


@operation()
def threshold(x: Tensor, alpha: float, value: float) -> Tensor:
    """x where it is above alpha, else `value`."""
    return x.mask_fill(x <= alpha, value)


@operation()
def thresholded_relu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is above alpha, else 0."""
    return threshold(x, alpha, 0.0)


@operation()
def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)."""
    return x - x.tanh()


@operation()
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|).

    Burn's gradient squares the divisor: 1e-20 at 1e20 in float32, here 0 for 1e-40.
    """
    return x / x.abs().add_scalar(1.0)


@operation()
def glu(x: Tensor, dim: int) -> Tensor:
    """The first half along `dim` times the sigmoid of the second.

    Raises:
        ShapeError: the size along `dim` is odd.
    """
    size = x.shape[positive_dim(x, dim)]
    if size % 2:
        raise ShapeError(f"`glu` needs an even size along dim {dim}, got {list(x.shape)}")
    left = x.narrow(dim, 0, size // 2)
    right = x.narrow(dim, size // 2, size // 2)
    return left * sigmoid(right)


@operation()
def shrink(x: Tensor, threshold: float = 0.5, bias: float = 0.0) -> Tensor:
    """0 within the threshold, else x moved by `bias` towards 0."""
    within = x.abs()
    moved = x - x.sign().mul_scalar(bias)
    return moved.mask_fill(within <= threshold, 0.0)


@operation()
def soft_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """0 within the threshold, else x moved by it towards 0."""
    return shrink(x, threshold, threshold)


@operation()
def hard_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """0 within the threshold, else x."""
    return x.mask_fill(x.abs() <= threshold, 0.0)
