"""The element-wise ops and their forms in PyTorch, and in closed form at the range of float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tests.fuzz_programs import Array, Program, Random, broadcast_shapes, drawn_shape

Makers = dict[str, Callable[[Random], Program]]


def _at(*conditions: Callable[[Array], Any]) -> Callable[[Sequence[Array], int], Any]:
    """Where a condition holds of the first operand."""
    return lambda operands, position: np.any([each(operands[0]) for each in conditions], axis=0)


def _unary(ours: Any, theirs: Any, **more: Any) -> Callable[[Random], Program]:
    return lambda rng: Program(ours, theirs, [drawn_shape(rng)], **more)


def _binary(ours: Any, theirs: Any, **more: Any) -> Callable[[Random], Program]:
    """Of one shape, with any values; broadcast, with some whose sums do not leave the range."""

    def make(rng: Random) -> Program:
        if rng.random() < 0.5:
            return Program(ours, theirs, [drawn_shape(rng)] * 2, **more)
        return Program(
            ours, theirs, broadcast_shapes(rng, 2), **{**more, "kind": "finite", "atol": 1e-4}
        )

    return make


def _scalar(name: str, theirs: Any, values: Sequence[float], **more: Any) -> Any:
    def make(rng: Random) -> Program:
        c = float(np.float32(rng.choice(values)))
        return Program(
            lambda x: getattr(x, name)(c), lambda x: theirs(x, c), [drawn_shape(rng)], **more
        )

    return make


def _limited(x: Any, low: float, high: float) -> Any:
    """Burn's rule at nan: it is let through."""
    x = torch.where(x > high, torch.full_like(x, high), x)
    return torch.where(x < low, torch.full_like(x, low), x)


class _Closed(torch.autograd.Function):
    """A value and its derivative in closed form."""

    @staticmethod
    def forward(context: Any, x: Any, value: Any, slope: Any) -> Any:
        context.save_for_backward(slope(x))
        return value(x)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad * context.saved_tensors[0], None, None


def closed(value: Any, slope: Any) -> Any:
    return lambda x: _Closed.apply(x, value, slope)


def _softplus(x: Any) -> Any:
    return torch.clamp_min(x, 0.0) + torch.log1p(torch.exp(-torch.abs(x)))


def _sigmoid_slope(x: Any) -> Any:
    return torch.sigmoid(x) * torch.sigmoid(-x)


def _silu_slope(x: Any) -> Any:
    inner = torch.where(torch.isposinf(x), 0.0, x * _sigmoid_slope(x))
    return torch.sigmoid(x) + inner


def _mish_slope(x: Any) -> Any:
    power = _softplus(x)
    inner = x * torch.sigmoid(x) / torch.cosh(torch.clamp_max(power, 300.0)) ** 2
    return torch.tanh(power) + torch.where(x > 300, 0.0, inner)


def _elu(x: Any, alpha: float, scale: float = 1.0, within: float = 1.0) -> Any:
    """Selected before it is computed; at nan as Burn, which lets both branches through."""
    small = closed(torch.expm1, torch.exp)(torch.where(x <= 0, x, 0.0) / within)
    return torch.where(x <= 0, small * alpha, x) * scale


NORMAL = 5e-38
"""Four times the smallest normal number: PyTorch's sigmoid is 0 as soon as it is below one."""
GELU = math.sqrt(2.0 / math.pi)
ANY = (0.0, 1.0, -0.5, 3.0, 1e-20, -1e10, 0.1)
UNARY: Makers = {
    "neg": _unary(lambda x: -x, lambda x: -x),
    "abs": _unary(lambda x: x.abs(), torch.abs, skipped=_at(np.isnan)),
    "sign": _unary(
        lambda x: x.sign(), closed(lambda x: torch.where(x.isnan(), x, x.sign()), torch.zeros_like)
    ),
    "recip": _unary(lambda x: x.recip(), torch.reciprocal),
    "exp": _unary(lambda x: x.exp(), torch.exp),
    "log": _unary(lambda x: x.log(), torch.log),
    "log1p": _unary(lambda x: x.log1p(), torch.log1p),
    "erf": _unary(lambda x: x.erf(), torch.erf, rtol=1e-5),
    "sqrt": _unary(lambda x: x.sqrt(), torch.sqrt),
    "square": _unary(lambda x: x.square(), torch.square),
    "sin": _unary(lambda x: x.sin(), torch.sin),
    "cos": _unary(lambda x: x.cos(), torch.cos),
    "tan": _unary(lambda x: x.tan(), torch.tan),
    "sinh": _unary(lambda x: x.sinh(), torch.sinh),
    "cosh": _unary(lambda x: x.cosh(), torch.cosh),
    "tanh": _unary(
        lambda x: x.tanh(), closed(torch.tanh, lambda x: 4.0 * _sigmoid_slope(2.0 * x)), atol=NORMAL
    ),
    "asin": _unary(lambda x: x.asin(), torch.asin),
    "acos": _unary(lambda x: x.acos(), torch.acos),
    "atan": _unary(lambda x: x.atan(), torch.atan),
    "asinh": _unary(lambda x: x.asinh(), torch.asinh, value_skipped=lambda o: np.abs(o[0]) > 1e37),
    "acosh": _unary(lambda x: x.acosh(), torch.acosh, skipped=_at(lambda x: x < 1)),
    "atanh": _unary(lambda x: x.atanh(), torch.atanh, skipped=_at(lambda x: np.abs(x) > 1)),
    "round": _unary(lambda x: x.round(), torch.round),
    "floor": _unary(lambda x: x.floor(), torch.floor),
    "ceil": _unary(lambda x: x.ceil(), torch.ceil),
    "trunc": _unary(lambda x: x.trunc(), torch.trunc),
    "relu": _unary(lambda x: x.relu(), torch.relu),
    "sigmoid": _unary(lambda x: x.sigmoid(), closed(torch.sigmoid, _sigmoid_slope), atol=NORMAL),
    "log_sigmoid": _unary(
        lambda x: x.log_sigmoid(),
        closed(lambda x: -_softplus(-x), lambda x: torch.sigmoid(-x)),
        atol=NORMAL,
    ),
    "silu": _unary(
        lambda x: x.silu(), closed(lambda x: x * torch.sigmoid(x), _silu_slope), atol=1e-7
    ),
    "gelu": _unary(
        lambda x: x.gelu(),
        closed(
            lambda x: x * torch.special.erfc(-x * math.sqrt(0.5)) / 2,
            lambda x: (
                torch.special.erfc(-x * math.sqrt(0.5)) / 2
                + torch.exp(-(x.clamp(-99, 99) ** 2) / 2)
                * x.clamp(-99, 99)
                / math.sqrt(2 * math.pi)
            ),
        ),
        rtol=1e-4,
        atol=NORMAL,
        skipped=_at(lambda x: (x < -0.7) & (x > -0.8)),
    ),
    "gelu_approximate": _unary(
        lambda x: x.gelu_approximate(),
        lambda x: x * torch.sigmoid(2 * GELU * (x + 0.044715 * x**3)),
        atol=1e-6,
        skipped=_at(np.isinf),
        value_skipped=lambda o: np.isneginf(o[0]),
    ),
    "softplus": _scalar(
        "softplus",
        lambda x, b: closed(_softplus, torch.sigmoid)(x * b) / b,
        (1.0, 0.5, 4.0),
        atol=NORMAL,
        value_skipped=lambda o: np.abs(o[0]) > 5e37,
    ),
    "mish": _unary(
        lambda x: x.mish(), closed(lambda x: x * torch.tanh(_softplus(x)), _mish_slope), atol=1e-7
    ),
    "elu": _scalar("elu", lambda x, a: _elu(x, a), (1.0, 0.5, 2.0), skipped=_at(np.isnan)),
    "celu": _scalar(
        "celu", lambda x, a: _elu(x, a, within=a), (1.0, 0.5, 2.0), skipped=_at(np.isnan)
    ),
    "selu": _unary(
        lambda x: x.selu(),
        lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805),
        skipped=_at(np.isnan, lambda x: x == 0),
    ),
    "leaky_relu": _scalar("leaky_relu", lambda x, s: torch.where(x < 0, x * s, x), (0.01, 0.2)),
    "hard_sigmoid": _unary(
        lambda x: x.hard_sigmoid(), lambda x: _limited(x * 0.2 + 0.5, 0.0, 1.0), atol=1e-7
    ),
    "hard_swish": _unary(
        lambda x: x.hard_swish(),
        lambda x: x * _limited(x / 6 + 0.5, 0.0, 1.0),
        atol=1e-6,
        skipped=_at(lambda x: np.abs(np.abs(x) - 3) < 1e-3, np.isinf),
    ),
    "hardtanh": _unary(lambda x: x.hardtanh(), lambda x: _limited(x, -1.0, 1.0)),
    "relu6": _unary(lambda x: x.relu6(), lambda x: _limited(x, 0.0, 6.0)),
    "threshold": _unary(lambda x: x.threshold(0.5, 2.0), lambda x: torch.where(x <= 0.5, 2.0, x)),
    "thresholded_relu": _unary(
        lambda x: x.thresholded_relu(), lambda x: torch.where(x <= 1.0, 0.0, x)
    ),
    "tanhshrink": _unary(lambda x: x.tanhshrink(), lambda x: x - torch.tanh(x), atol=1e-6),
    "softsign": _unary(lambda x: x.softsign(), functional.softsign, atol=1e-6),
    "shrink": _unary(
        lambda x: x.shrink(0.75, 0.25),
        lambda x: torch.where(x.abs() <= 0.75, 0.0, x - 0.25 * x.sign()),
        atol=1e-6,
        skipped=_at(np.isnan),
    ),
    "soft_shrink": _unary(
        lambda x: x.soft_shrink(), functional.softshrink, atol=1e-6, skipped=_at(np.isnan)
    ),
    "hard_shrink": _unary(lambda x: x.hard_shrink(), functional.hardshrink, skipped=_at(np.isnan)),
    "add_scalar": _scalar("add_scalar", lambda x, c: x + c, ANY),
    "sub_scalar": _scalar("sub_scalar", lambda x, c: x - c, ANY),
    "mul_scalar": _scalar("mul_scalar", lambda x, c: x * c, ANY),
    "div_scalar": _scalar("div_scalar", lambda x, c: x / c, (1.0, -0.5, 3.0, 1e-20, -1e10)),
    "remainder_scalar": _scalar(
        "remainder_scalar",
        lambda x, c: closed(lambda y: torch.remainder(y, c), torch.ones_like)(x),
        (1.0, -0.5, 3.0),
        value_skipped=lambda o: np.abs(o[0]) > 1e6,
    ),
    "powf_scalar": _scalar(
        "powf_scalar",
        torch.pow,
        (3.0, 1.0, 2.0, -1.0, 0.5, -0.5, 1.5),
        rtol=1e-4,
        skipped=_at(np.isneginf),
        value_skipped=lambda o: np.isneginf(o[0]),
    ),
    "powi_scalar": _scalar("powi_scalar", torch.pow, (3, 1, 2, -1), rtol=1e-4),
    "clamp_min": _scalar("clamp_min", lambda x, c: _limited(x, c, math.inf), (0.0, 1.0, -0.5)),
    "clamp_max": _scalar("clamp_max", lambda x, c: _limited(x, -math.inf, c), (0.0, 1.0, -0.5)),
    "clamp": _unary(lambda x: x.clamp(-0.5, 2.0), lambda x: _limited(x, -0.5, 2.0)),
}


def _power_skipped(operands: Sequence[Array], position: int) -> Any:
    """What float32 cannot tell: the base's gradient behind a power that leaves the range; and the
    limits that PyTorch has as nan.
    """
    base, exponent = np.broadcast_arrays(*operands)
    if position == 1:
        return (base == np.inf) | np.isnan(base) | (base == 0)
    return (np.abs(exponent) < 1) | ~np.isfinite(base) | ~np.isfinite(exponent)


def _any_infinite(operands: Sequence[Array], position: int) -> Any:
    lhs, rhs = np.broadcast_arrays(*operands)
    return ~np.isfinite(lhs) | ~np.isfinite(rhs) | ((lhs == 0) & (rhs == 0))


BINARY: Makers = {
    "add": _binary(lambda a, b: a + b, torch.add),
    "sub": _binary(lambda a, b: a - b, torch.sub),
    "mul": _binary(lambda a, b: a * b, torch.mul),
    "div": _binary(lambda a, b: a / b, torch.div, atol=NORMAL),
    "remainder": _binary(
        lambda a, b: a % b,
        torch.remainder,
        rtol=1e-4,
        skipped=lambda o, p: (
            np.isnan(o[0] + o[1] * 0) | (np.asarray(o[1] * np.ones_like(o[0])) == 0)
        ),
    ),
    "powf": _binary(
        lambda a, b: a.powf(b), torch.pow, rtol=1e-3, atol=1e-43, skipped=_power_skipped
    ),
    "atan2": _binary(
        lambda a, b: a.atan2(b), torch.atan2, rtol=1e-3, atol=1e-43, skipped=_any_infinite
    ),
    "hypot": _binary(lambda a, b: a.hypot(b), torch.hypot, rtol=1e-3, skipped=_any_infinite),
    "mse": lambda rng: Program(
        lambda a, b: a.mse(b),
        lambda a, b: functional.mse_loss(a, b).reshape(1),
        [drawn_shape(rng, empty=False)] * 2,
        "mild",
    ),
}
ELEMENTWISE: Makers = {**UNARY, **BINARY}
