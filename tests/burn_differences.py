"""Where values and gradients are not Burn's: the list that the page of differences shows.

`python -m tests.burn_differences` prints the page's table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckptcli import Device, Tensor
from tests.helpers import backward, gradient

INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Difference:
    """One input at which one figure differs.

    Attributes:
        op: the op's name.
        operands: a number or a list of numbers each.
        what: "value", or the index of the operand whose gradient it is.
        burn, ours: the figures, numbers or lists; of the sum of the output's elements.
        call: the op of the operands, where it is not the method of this name.
        dtype: of the operands.
        shown: how the page writes the operands; "" for as they are.
        reason: what the page adds to Burn's figure.
    """

    op: str
    operands: Sequence[Any]
    what: str | int
    burn: Any
    ours: Any
    call: Callable[..., Tensor] | None = None
    dtype: str = "float32"
    shown: str = ""
    reason: str = ""

    @property
    def row(self) -> str:
        """The line of the page's table."""
        figure = "value" if self.what == "value" else "gradient"
        if len(self.operands) > 1 and self.what != "value":
            figure += " of the " + ("first" if self.what == 0 else "second")
        operands = self.shown or "; ".join(map(written, self.operands))
        dtype = "" if self.dtype == "float32" else f" ({self.dtype})"
        burn = written(self.burn) + (f": {self.reason}" if self.reason else "")
        return f"| `{self.op}` | {operands}{dtype} | {figure} | {burn} | {written(self.ours)} |"


def written(figure: Any) -> str:
    """`1e-20`, `[6, 0, 0]`."""
    if isinstance(figure, (list, tuple)):
        return f"[{', '.join(map(written, figure))}]"
    text = f"{figure:.9g}".replace("e+", "e")
    return re.sub(r"e-0", "e-", text)


def one(op: str, x: Any, burn: Any, ours: Any, what: str | int = 0, **more: Any) -> Difference:
    """Of an op of one operand."""
    return Difference(op, [x], what, burn, ours, **more)


def two(op: str, x: Any, y: Any, what: int, burn: Any, ours: Any, **more: Any) -> Difference:
    """Of an op of two operands."""
    return Difference(op, [x, y], what, burn, ours, **more)


def _scattered(x: Tensor, values: Tensor) -> Tensor:
    return x.scatter_nd(np.zeros((2, 1), dtype=np.int64), values, "max")


def _stretched(x: Tensor) -> Tensor:
    """The first of three places along the last dim is the first of two: the other's weight is 0."""
    return x.reshape([1, 1, 1, 2]).interpolate([1, 3], "bilinear")[:, :, :, :1]


UNSELECTED = "0 times the infinite slope of the branch that is not selected"
FIXED = "0 / 0, until pull request 5534"
LATER, LAST, FIRST = "the last of equal ones", [1.0, 1.0, 2.0, 0.0], [1.0, 3.0, 0.0, 0.0]
UNEQUAL, PAST, KEPT = "a nan equals nothing", [3.0, 0.0, 0.0], [1.0, 2.0, 0.0]

DIFFERENCES = [
    # The branch that is not selected.
    one("elu", 100.0, NAN, 1.0, reason=UNSELECTED),
    one("elu", 800.0, NAN, 1.0, dtype="float64", reason=UNSELECTED),
    one("celu", 100.0, NAN, 1.0, call=lambda x: x.celu(1.0), reason=UNSELECTED),
    one("selu", 100.0, NAN, 1.0507009873554805, reason=UNSELECTED),
    one("softplus", 100.0, NAN, 1.0, reason="0 * inf"),
    one("mish", 100.0, NAN, 1.0, reason="0 * inf"),
    one("gelu_approximate", 1e20, NAN, 1.0, reason="0 * inf"),
    one("gelu_approximate", -6.0, 0.0, -7.70997e-10, reason="1 - tanh(...)^2"),
    one("gelu", INF, NAN, 1.0, reason="inf * 0"),
    one("gelu", -6.0, -3.6455e-8, -3.54687e-8, reason="1 + erf(...)"),
    one("silu", INF, NAN, 1.0, reason="inf * 0"),
    # Digits that are lost.
    one("elu", -1e-8, 0.0, -1e-8, "value", reason="exp(x) - 1"),
    one("celu", -1e-8, 0.0, -1e-8, "value", call=lambda x: x.celu(1.0), reason="exp(x) - 1"),
    one("selu", -1e-8, 0.0, -1.7580993e-8, "value", reason="exp(x) - 1"),
    one("softplus", -20.0, 0.0, 2.0611537e-9, "value", reason="log(1 + exp(x))"),
    one("softplus", 100.0, INF, 100.0, "value", reason="exp(x)"),
    one("mish", -20.0, 0.0, -4.1223073e-8, "value", reason="log(1 + exp(x))"),
    one("mish", -20.0, -4.1223075e-8, -3.9161922e-8),
    one("gelu", -6.0, 0.0, -5.9195377e-9, "value", reason="1 + erf(...)"),
    one("gelu_approximate", -6.0, 0.0, -8.4396462e-11, "value", reason="1 + tanh(...)"),
    one("sigmoid", 20.0, 0.0, 2.0611535e-9, reason="s * (1 - s)"),
    one("tanh", 10.0, 0.0, 8.2446139e-9, reason="1 - tanh(x)^2"),
    # An operand squared.
    two("div", 1e-20, 1e-23, 1, -INF, -1e26, reason="the divisor squared"),
    two("div", 1e20, 1e25, 1, 0.0, -1e-30, reason="the divisor squared"),
    two("div", 0.0, 1e-30, 1, NAN, 0.0, reason="the divisor squared"),
    one("softsign", 1e20, 1e-20, 0.0, reason="the divisor squared"),
    one("recip", 1e22, 0.0, -9.80909e-45, reason="x squared"),
    two("atan2", 1e-23, 1e-23, 0, INF, 5e22, reason="both squared"),
    two("atan2", 1.0, INF, 0, NAN, 0.0, reason="both squared"),
    two("hypot", 3e38, 3e38, 0, 0.0, 0.70710677, reason="x / inf"),
    two("hypot", INF, 1.0, 0, NAN, 1.0, reason="inf / inf"),
    one("asinh", 1e20, 0.0, 1e-20, reason="x squared"),
    one("acosh", 1e20, 0.0, 1e-20, reason="x squared"),
    one("acosh", -2.0, 0.57735026, NAN, reason="though the value is nan"),
    one("atan", 1e20, 0.0, 9.99994610111476e-41, reason="x squared"),
    one("atanh", 1e20, 0.0, -9.99994610111476e-41, reason="x squared; the value is nan"),
    one("sqrt", -INF, 0.0, NAN, reason="(-inf)^-0.5; the value is nan"),
    # Limits.
    two("powf", 0.0, 2.0, 1, NAN, 0.0, reason="0 * log(0)"),
    two("powf", INF, -1.0, 1, NAN, 0.0, reason="0 * log(inf)"),
    two("powf", 0.0, 0.0, 0, NAN, 0.0, reason="0^-1 * 0"),
    # The quotient of a remainder, as its own value has it.
    two("remainder", 1.0, 0.1, 1, -10.0, -9.0, reason="the rounded quotient"),
    two("remainder", 5.0, 0.1, 1, -50.0, -49.0, reason="the rounded quotient"),
    two("remainder", 1e-38, -1e38, 1, 0.0, 1.0, reason="the rounded quotient"),
    one(
        *("div_scalar", 1.0, 0.3333333432674408, 1 / 3),
        dtype="float64",
        shown="1 / 3",
        reason="1 / c in float32",
        call=lambda x: x.div_scalar(3.0),
    ),
    # Products of which a factor is 0.
    one("prod", [0.0, 2.0, 3.0], [NAN, 0.0, 0.0], [6.0, 0.0, 0.0], reason=FIXED),
    one(
        *("prod_dim", [0.0, 2.0, 3.0], [NAN, 0.0, 0.0], [6.0, 0.0, 0.0]),
        call=lambda x: x.prod_dim(0),
        reason=FIXED,
    ),
    # Where one wins.
    two(
        *("scatter_nd", [1.0], [3.0, 5.0], 1, [1.0, 1.0], [0.0, 1.0]),
        call=_scattered,
        shown="max, [1]; [3, 5] at one place",
        reason="both are above the old element",
    ),
    one("cummax", [1.0, 2.0, 2.0, 1.0], LAST, FIRST, call=lambda x: x.cummax(0), reason=LATER),
    one("cummax", [2.0, NAN, 3.0], PAST, KEPT, call=lambda x: x.cummax(0), reason=UNEQUAL),
    one("cummin", [3.0, 2.0, 2.0, 3.0], LAST, FIRST, call=lambda x: x.cummin(0), reason=LATER),
    one("cummin", [2.0, NAN, 1.0], PAST, KEPT, call=lambda x: x.cummin(0), reason=UNEQUAL),
    one(
        *("interpolate", [1.0, INF], NAN, 1.0, "value"),
        call=_stretched,
        shown="bilinear, [1, inf] beside a weight of 0",
    ),
    one(
        *("quiet_softmax", [-INF, -INF], [NAN, NAN], [0.0, 0.0], "value"),
        call=lambda x: x.quiet_softmax(0),
    ),
]


def found(difference: Difference, dev: Device) -> Any:
    """Our figure."""
    arrays = [np.atleast_1d(np.asarray(x, difference.dtype)) for x in difference.operands]
    operands = [dev.tensor(array).require_grad() for array in arrays]
    call = difference.call or (lambda x, *others: getattr(x, difference.op)(*others))
    with dev.backend.quiet():
        output = call(*operands)
        if difference.what == "value":
            return output.numpy().ravel()
        return gradient(backward(output.sum()), operands[int(difference.what)])


def table() -> str:
    """The page's."""
    head = "| op | input | what | Burn | `ckpt` |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(f"{difference.row}\n" for difference in DIFFERENCES)


if __name__ == "__main__":
    print(table(), end="")
