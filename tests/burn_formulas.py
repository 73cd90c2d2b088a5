"""Burn's own values and gradients of element-wise ops: its formulas in NumPy, node by node.

A second, small tape, so that compositions meet what Burn's meet: the branch that is not selected,
zero times infinity. Kernels are those of Burn's CPU backend, Flex.

Source: Burn, `burn-autodiff/src/ops/{tensor,activation}.rs`, `burn-flex/src/ops/activation.rs` and
`burn-tensor/src/tensor/activation/base.rs`, as they were shortly before 0.22.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Pull = Callable[[Array], Array]

ERF = np.vectorize(math.erf, otypes=["float64"])


class Burn:
    """A value, and how its gradient goes on to the values that it was made of."""

    def __init__(self, value: Array, parents: Sequence[tuple[Burn, Pull]] = ()) -> None:
        self.value = value
        self.parents = parents

    def to(self, value: Any, slope: Any) -> Burn:
        """A function of this value alone, with its derivative."""
        return Burn(self._array(value), [(self, lambda grad: grad * self._array(slope))])

    def _array(self, value: Any) -> Array:
        return np.asarray(value, dtype=self.value.dtype)

    # Arithmetic.

    def add(self, other: Burn) -> Burn:
        return Burn(self.value + other.value, [(self, lambda g: g), (other, lambda g: g)])

    def sub(self, other: Burn) -> Burn:
        return Burn(self.value - other.value, [(self, lambda g: g), (other, lambda g: -g)])

    def mul(self, other: Burn) -> Burn:
        left, right = self.value, other.value
        return Burn(left * right, [(self, lambda g: g * right), (other, lambda g: g * left)])

    def div(self, other: Burn) -> Burn:
        left, right = self.value, other.value
        return Burn(
            left / right,
            [(self, lambda g: g * (1 / right)), (other, lambda g: g * (-left / (right * right)))],
        )

    def remainder(self, other: Burn) -> Burn:
        left, right = self.value, other.value
        quotient = np.floor(left / right)
        return Burn(np.mod(left, right), [(self, lambda g: g), (other, lambda g: g * -quotient)])

    def add_scalar(self, c: float) -> Burn:
        return self.to(self.value + self._array(c), 1.0)

    def mul_scalar(self, c: float) -> Burn:
        return self.to(self.value * self._array(c), c)

    def div_scalar(self, c: float) -> Burn:
        return self.to(self.value / self._array(c), np.float32(1.0) / np.float32(c))

    def neg(self) -> Burn:
        return self.to(-self.value, -1.0)

    def recip(self) -> Burn:
        return self.to(1 / self.value, -(1 / (self.value * self.value)))

    def powf(self, other: Burn) -> Burn:
        base, exponent = self.value, other.value
        power = np.power(base, exponent)
        return Burn(
            power,
            [
                (self, lambda g: g * (np.power(base, exponent - 1) * exponent)),
                (other, lambda g: g * (power * np.log(base))),
            ],
        )

    def powf_scalar(self, c: float) -> Burn:
        x = self.value
        power = x * x if c - 1 == 2 else np.power(x, self._array(c - 1))
        return self.to(np.power(x, self._array(c)), power * self._array(c))

    def hypot(self, other: Burn) -> Burn:
        left, right = self.value, other.value
        root = np.hypot(left, right)
        return Burn(
            root, [(self, lambda g: g * (left / root)), (other, lambda g: g * (right / root))]
        )

    def atan2(self, other: Burn) -> Burn:
        y, x = self.value, other.value
        square = x * x + y * y
        pulls = [(self, lambda g: g * (x / square)), (other, lambda g: g * -(y / square))]
        return Burn(np.arctan2(y, x), pulls)

    # Functions of one value.

    def exp(self) -> Burn:
        return self.to(np.exp(self.value), np.exp(self.value))

    def log(self) -> Burn:
        return self.to(np.log(self.value), 1 / self.value)

    def log1p(self) -> Burn:
        return self.to(np.log1p(self.value), 1 / (self.value + 1))

    def sqrt(self) -> Burn:
        return self.to(np.sqrt(self.value), np.power(self.value, self._array(-0.5)) / 2)

    def abs(self) -> Burn:
        return self.to(np.abs(self.value), np.sign(self.value))

    def sin(self) -> Burn:
        return self.to(np.sin(self.value), np.cos(self.value))

    def cos(self) -> Burn:
        return self.to(np.cos(self.value), -np.sin(self.value))

    def tan(self) -> Burn:
        tan = np.tan(self.value)
        return self.to(tan, tan * tan + 1)

    def sinh(self) -> Burn:
        return self.to(np.sinh(self.value), np.cosh(self.value))

    def cosh(self) -> Burn:
        return self.to(np.cosh(self.value), np.sinh(self.value))

    def tanh(self) -> Burn:
        tanh = np.tanh(self.value)
        return self.to(tanh, -(tanh * tanh) + 1)

    def asin(self) -> Burn:
        return self.to(np.arcsin(self.value), 1 / np.sqrt(-(self.value * self.value) + 1))

    def acos(self) -> Burn:
        return self.to(np.arccos(self.value), -(1 / np.sqrt(-(self.value * self.value) + 1)))

    def atan(self) -> Burn:
        return self.to(np.arctan(self.value), 1 / (self.value * self.value + 1))

    def asinh(self) -> Burn:
        return self.to(np.arcsinh(self.value), 1 / np.sqrt(self.value * self.value + 1))

    def acosh(self) -> Burn:
        return self.to(np.arccosh(self.value), 1 / np.sqrt(self.value * self.value - 1))

    def atanh(self) -> Burn:
        return self.to(np.arctanh(self.value), 1 / (-(self.value * self.value) + 1))

    def erf(self) -> Burn:
        slope = np.exp(-(self.value * self.value)) * 2 / self._array(np.sqrt(np.pi))
        return self.to(ERF(self.value), slope)

    def relu(self) -> Burn:
        return self.where(self.value <= 0, Burn(np.zeros_like(self.value)))

    def sigmoid(self) -> Burn:
        e = np.exp(-np.abs(self.value))
        sigmoid = np.where(self.value >= 0, 1 / (1 + e), e / (1 + e))
        return self.to(sigmoid, sigmoid * (1 - sigmoid))

    def log_sigmoid(self) -> Burn:
        x = self.value
        value = np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
        return self.to(value, Burn(-x).sigmoid().value)

    def gelu(self) -> Burn:
        x = self.value
        share = self._array(0.5) * (1 + self._array(ERF(x / self._array(np.sqrt(2.0)))))
        bell = self._array(1 / np.sqrt(2 * np.pi)) * np.exp(self._array(-0.5) * x * x)
        return self.to(x * share, share + x * bell)

    def where(self, mask: Array, other: Burn) -> Burn:
        """The other value where the mask holds; each gets the gradient where it is taken."""
        return Burn(
            np.where(mask, other.value, self.value),
            [
                (self, lambda g: np.where(mask, self._array(0), g)),
                (other, lambda g: np.where(mask, g, self._array(0))),
            ],
        )

    # Compositions.

    def silu(self) -> Burn:
        return self.mul(self.sigmoid())

    def softplus(self) -> Burn:
        return self.mul_scalar(1.0).exp().add_scalar(1.0).log().div_scalar(1.0)

    def mish(self) -> Burn:
        return self.mul(self.softplus().tanh())

    def elu(self) -> Burn:
        return self.where(self.value <= 0, self.exp().add_scalar(-1.0).mul_scalar(1.0))

    def celu(self) -> Burn:
        scaled = self.div_scalar(1.0).exp().add_scalar(-1.0).mul_scalar(1.0)
        return self.where(self.value <= 0, scaled)

    def selu(self) -> Burn:
        alpha, gamma = 1.6732632423543772, 1.0507009873554805
        negative = self.exp().add_scalar(-1.0).mul_scalar(alpha * gamma)
        return negative.where(self.value >= 0, self.mul_scalar(gamma))

    def gelu_approximate(self) -> Burn:
        inner = self.add(self.powf_scalar(3.0).mul_scalar(0.044715))
        tanh = inner.mul_scalar(float(np.sqrt(2 / np.pi))).tanh()
        return self.mul(tanh.add_scalar(1.0)).mul_scalar(0.5)

    def tanhshrink(self) -> Burn:
        return self.sub(self.tanh())

    def softsign(self) -> Burn:
        return self.div(self.abs().add_scalar(1.0))

    def leaky_relu(self) -> Burn:
        return self.where(self.value < 0, self.mul_scalar(0.01))

    def hard_swish(self) -> Burn:
        line = self.mul_scalar(1.0 / 6.0).add_scalar(0.5)
        zeros = Burn(np.zeros_like(self.value))
        ones = Burn(np.ones_like(self.value))
        return self.mul(line.where(line.value > 1, ones).where(line.value < 0, zeros))

    # Products.

    def prod(self) -> Burn:
        product = np.prod(self.value, keepdims=True)
        return self.to(product, product / self.value)

    def cummax(self, dim: int) -> Burn:
        """Of one dimension: the gradient goes to the last place where input and output agree."""
        return self._running(np.maximum.accumulate(self.value))

    def cummin(self, dim: int) -> Burn:
        return self._running(np.minimum.accumulate(self.value))

    def _running(self, output: Array) -> Burn:
        places = np.where(output == self.value, np.arange(len(output)), 0)
        sources = np.maximum.accumulate(places)

        def pull(grad: Array) -> Array:
            found = np.zeros_like(grad)
            np.add.at(found, sources, grad)
            return found

        return Burn(output, [(self, pull)])


def gradients(root: Burn, leaves: Sequence[Burn]) -> list[Array]:
    """Of the sum of the root's elements, in the order of a tape: what was made last comes first."""
    order: list[Burn] = []
    _visit(root, order, set())
    found: dict[int, Array] = {id(root): np.ones_like(root.value)}
    for node in reversed(order):
        for parent, pull in node.parents:
            before = found.get(id(parent))
            pulled = pull(found[id(node)])
            found[id(parent)] = pulled if before is None else before + pulled
    return [found[id(leaf)] for leaf in leaves]


def _visit(node: Burn, order: list[Burn], seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    for parent, _ in node.parents:
        _visit(parent, order, seen)
    order.append(node)
