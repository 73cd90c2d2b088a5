"""Element-wise ops against closed forms in extended precision, up to the ends of float64.

PyTorch's float64 is itself infinite or nan there. NumPy's long double has four thousand decimal
orders of magnitude on x86; where it is no wider than float64 there is nothing to hold against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor
from tests.fuzz_programs import SPECIAL, Array

NEEDS_LONG_DOUBLE = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="long double is no wider than float64 here",
)
LONG_SPECIAL = (
    *SPECIAL,
    *(5e-324, -5e-324, 1e-310, 1e-200, -1e-200, 1e200, -1e200, 1e300, 1e308, -1e308),
    *(800.0, -800.0, 709.5, -709.5, 745.0, 1e100, -1e100),
)
Long = Any


@dataclass(frozen=True)
class Form:
    """An op, its value and its derivative by each operand.

    `counts` says where the derivative is compared, `eps` how many units in the last place rounding
    may lead to, `tail` whether numbers below the normal ones may be 0.
    """

    ours: Callable[..., Tensor]
    value: Callable[..., Long]
    slopes: tuple[Callable[..., Long], ...]
    counts: Callable[..., Any] = lambda *operands: True
    eps: float = 64.0
    tail: bool = False


def _sigmoid(x: Long) -> Long:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def _bell(x: Long) -> Long:
    return _sigmoid(x) * _sigmoid(-x)


def _softplus(x: Long) -> Long:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _below(x: Long) -> Long:
    return np.where(x <= 0, x, 0)


def _mish_slope(x: Long) -> Long:
    power = np.minimum(_softplus(x), 2000)
    rest = np.where(np.isposinf(x), 0, x * _sigmoid(x) / np.cosh(power) ** 2)
    return np.tanh(power) + rest


def _number(x: Long) -> Any:
    return ~np.isnan(x)


def _both_finite(a: Long, b: Long) -> Any:
    return np.isfinite(a) & np.isfinite(b) & ((a != 0) | (b != 0))


SELU, ALPHA = 1.0507009873554804934193, 1.6732632423543772848170
FORMS: dict[str, Form] = {
    "recip": Form(lambda x: x.recip(), lambda x: 1 / x, (lambda x: -1 / x / x,), tail=True),
    "sqrt": Form(lambda x: x.sqrt(), np.sqrt, (lambda x: 0.5 / np.sqrt(x),)),
    "exp": Form(lambda x: x.exp(), np.exp, (np.exp,), eps=2000),
    "log": Form(lambda x: x.log(), np.log, (lambda x: 1 / x,)),
    "log1p": Form(lambda x: x.log1p(), np.log1p, (lambda x: 1 / (1 + x),)),
    "tanh": Form(lambda x: x.tanh(), np.tanh, (lambda x: 4 * _bell(2 * x),), eps=2000, tail=True),
    "sigmoid": Form(lambda x: x.sigmoid(), _sigmoid, (_bell,), eps=2000, tail=True),
    "log_sigmoid": Form(
        lambda x: x.log_sigmoid(), lambda x: -_softplus(-x), (lambda x: _sigmoid(-x),), tail=True
    ),
    "softplus": Form(lambda x: x.softplus(), _softplus, (_sigmoid,), eps=2000, tail=True),
    "silu": Form(
        lambda x: x.silu(),
        lambda x: x * _sigmoid(x),
        (lambda x: _sigmoid(x) + np.where(np.isposinf(x), 0, x * _bell(x)),),
        counts=lambda x: ~((x < -1) & (x > -2)),  # the derivative is 0 near -1.28
        eps=4000,
        tail=True,
    ),
    "elu": Form(
        lambda x: x.elu(),
        lambda x: np.where(x <= 0, np.expm1(_below(x)), x),
        (lambda x: np.exp(_below(x)),),
        counts=_number,
        eps=2000,
    ),
    "celu": Form(
        lambda x: x.celu(2.0),
        lambda x: np.where(x <= 0, 2 * np.expm1(_below(x) / 2), x),
        (lambda x: np.exp(_below(x) / 2),),
        counts=_number,
        eps=2000,
    ),
    "selu": Form(
        lambda x: x.selu(),
        lambda x: SELU * np.where(x <= 0, ALPHA * np.expm1(_below(x)), x),
        (lambda x: SELU * np.where(x <= 0, ALPHA * np.exp(_below(x)), 1),),
        counts=lambda x: _number(x) & (x != 0),
        eps=2000,
    ),
    "mish": Form(
        lambda x: x.mish(),
        lambda x: x * np.tanh(_softplus(x)),
        (_mish_slope,),
        counts=lambda x: ~((x < -1) & (x > -1.4)),  # the derivative is 0 near -1.19
        eps=4000,
        tail=True,
    ),
    "asin": Form(lambda x: x.asin(), np.arcsin, (lambda x: 1 / np.sqrt((1 - x) * (1 + x)),)),
    "atan": Form(lambda x: x.atan(), np.arctan, (lambda x: 1 / (1 + x * x),), tail=True),
    "asinh": Form(
        lambda x: x.asinh(),
        np.arcsinh,
        (lambda x: 1 / np.hypot(x, np.longdouble(1)),),
    ),
    "acosh": Form(
        lambda x: x.acosh(),
        np.arccosh,
        (lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1)),),
    ),
    "atanh": Form(
        lambda x: x.atanh(),
        np.arctanh,
        (lambda x: 1 / ((1 - x) * (1 + x)),),
        counts=lambda x: ~(np.abs(x) > 1),
    ),
    "mul": Form(lambda a, b: a * b, lambda a, b: a * b, (lambda a, b: b, lambda a, b: a)),
    "div": Form(
        lambda a, b: a / b,
        lambda a, b: a / b,
        (lambda a, b: 1 / b, lambda a, b: -a / b / b),
        tail=True,
    ),
    "atan2": Form(
        lambda a, b: a.atan2(b),
        np.arctan2,
        (lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
        counts=_both_finite,
        tail=True,
    ),
    "hypot": Form(
        lambda a, b: a.hypot(b),
        np.hypot,
        (lambda a, b: a / np.hypot(a, b), lambda a, b: b / np.hypot(a, b)),
        counts=_both_finite,
        tail=True,
    ),
}


def wrong_elements(
    dev: Device, name: str, dtype: str, rng: np.random.Generator
) -> Iterator[tuple[str, Array, Any, Any]]:
    """What of one form is wrong on values that are drawn: what, operands, expected, found."""
    form = FORMS[name]
    count = 24
    operands = []
    for _ in form.slopes:
        wide = rng.normal(size=count) * 10.0 ** rng.uniform(-3, 3, count)
        drawn = np.where(rng.random(count) < 0.7, rng.choice(LONG_SPECIAL, count), wide)
        operands.append(drawn.astype(dtype))
    exact = [np.asarray(each, dtype=np.longdouble) for each in operands]
    leaves = [dev.tensor(each).require_grad() for each in operands]
    output = form.ours(*leaves)
    gradients = output.sum().backward()
    found = [output.numpy()]
    for leaf in leaves:
        gradient = gradients.wrt(leaf)
        assert gradient is not None
        found.append(gradient.numpy())
    for place, formula in enumerate((form.value, *form.slopes)):
        expected = np.asarray(formula(*exact))
        compared = np.broadcast_to(np.asarray(form.counts(*exact)) if place else True, count)
        bad = compared & ~_near(found[place], expected, form, np.finfo(dtype))
        if bad.any():
            here = np.stack([each[bad] for each in operands])
            what = f"{name} in {dtype}, {'gradient of ' + str(place - 1) if place else 'value'}"
            yield what, here, expected[bad], found[place][bad]


def _near(found: Array, expected: Any, form: Form, limits: Any) -> Any:
    least = 256 * limits.smallest_normal if form.tail else 6 * limits.smallest_subnormal
    allowed = np.abs(expected) * form.eps * limits.eps + np.longdouble(least)
    near = np.abs(found.astype(np.longdouble) - expected) <= allowed
    largest = np.longdouble(limits.max)
    at_the_end = (np.abs(expected) > largest * 0.99) & (np.abs(found) > largest * 0.98)
    at_the_end &= np.sign(found) == np.sign(expected)
    return near | at_the_end | (found == expected) | (np.isnan(found) & np.isnan(expected))
