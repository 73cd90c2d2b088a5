"""The page of differences from Burn: each figure on it, and that nothing is left out of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ckptcli import device
from ckptcli.autodiff.describe import descriptions
from tests.burn_differences import DIFFERENCES, Difference, found, table
from tests.burn_formulas import Array, Burn, gradients
from tests.helpers import backward, gradient

PAGE = Path(__file__).parents[1] / "docs" / "differences-from-burn.md"
NAMES = [f"{d.op} {d.what} {d.shown or d.operands} {d.dtype}" for d in DIFFERENCES]

DIGITS = 1e-3
"""What counts as agreeing: formulas that share the work otherwise round otherwise."""

MAGNITUDES = (
    *(0.0, 1e-44, 1e-38, 1e-30, 1e-23, 1e-20, 1e-10, 1e-8, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9),
    *(0.99, 0.9999, 1.0, 1.0001, 1.01, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0),
    *(50.0, 80.0, 88.0, 90.0, 100.0, 200.0, 1e3, 1e4, 1e6, 1e10, 1e13, 1e19, 1e20, 1e22, 1e30),
    *(1e38, 3e38, np.inf),
)
GRID = np.array(sorted({s * m for m in MAGNITUDES for s in (1.0, -1.0)}), dtype="float32")

UNARY = (
    *("exp", "log", "log1p", "sqrt", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin"),
    *("acos", "atan", "asinh", "acosh", "atanh", "erf", "neg", "recip", "relu", "sigmoid"),
    *("log_sigmoid", "gelu", "silu", "softplus", "mish", "elu", "celu", "selu"),
    *("gelu_approximate", "tanhshrink", "softsign", "leaky_relu", "hard_swish"),
)
BINARY = ("add", "sub", "mul", "div", "remainder", "powf", "hypot", "atan2")


def agree(ours: Array, burn: Array, absolute: float = 0.0) -> Array:
    with np.errstate(all="ignore"):
        far = np.abs(ours - burn) > DIGITS * np.maximum(np.abs(ours), np.abs(burn)) + absolute
    unlike = np.isnan(ours) != np.isnan(burn)
    infinite = (np.isinf(ours) | np.isinf(burn)) & (ours != burn)
    result: Array = ~(far | unlike | (infinite & ~np.isnan(ours)))
    return result


def both(name: str, *operands: Array, scalars: Sequence[float] = ()) -> tuple[list[Array], ...]:
    """Value and gradients of all operands, ours and Burn's."""
    dev = device().autodiff()
    leaves = [dev.tensor(operand).require_grad() for operand in operands]
    with dev.backend.quiet(), np.errstate(all="ignore"):
        output = getattr(leaves[0], name)(*leaves[1:], *scalars)
        found_gradients = backward(output.sum())
        nodes = [Burn(operand) for operand in operands]
        theirs = getattr(nodes[0], name)(*nodes[1:], *scalars)
        slopes = gradients(theirs, nodes)
    ours = [gradient(found_gradients, leaf) for leaf in leaves]
    return [output.numpy(), *ours], [theirs.value, *slopes]


def listed(op: str) -> set[str | int]:
    return {d.what for d in DIFFERENCES if d.op == op and d.dtype == "float32"}


@pytest.mark.parametrize("difference", DIFFERENCES, ids=NAMES)
def test_our_figure_is_what_the_page_says(difference: Difference) -> None:
    ours = found(difference, device().autodiff())
    np.testing.assert_allclose(ours, np.broadcast_to(difference.ours, ours.shape), rtol=1e-5)


@pytest.mark.parametrize(
    "difference", [d for d in DIFFERENCES if hasattr(Burn, d.op) and d.op != "div_scalar"]
)
def test_burns_formula_gives_what_the_page_says(difference: Difference) -> None:
    nodes = [Burn(np.atleast_1d(np.asarray(x, difference.dtype))) for x in difference.operands]
    with np.errstate(all="ignore"):
        dim = [0] if difference.op in ("cummax", "cummin") else []
        output = getattr(nodes[0], difference.op)(*nodes[1:], *dim)
        slopes = gradients(output, nodes)
    burn = output.value if difference.what == "value" else slopes[int(difference.what)]
    np.testing.assert_allclose(burn, np.broadcast_to(difference.burn, burn.shape), rtol=1e-4)
    assert not agree(np.asarray(difference.ours), burn).all()


@pytest.mark.parametrize("op", UNARY)
def test_no_op_of_one_operand_differs_elsewhere(op: str) -> None:
    """`tanhshrink` is a difference of numbers near 1, whose last bit is all that is left."""
    absolute = 2e-6 if op == "tanhshrink" else 0.0
    (value, slope), (burn_value, burn_slope) = both(op, GRID)
    assert ("value" in listed(op)) == (not agree(value, burn_value).all())
    assert (0 in listed(op)) == (not agree(slope, burn_slope, absolute).all())


@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.5, 2.5, 3.0, 4.0, -0.5, -3.0])
def test_a_power_differs_nowhere(exponent: float) -> None:
    """Of other exponents both make 1, x, a product, or the reciprocal of one."""
    ours, burn = both("powf_scalar", GRID, scalars=[exponent])
    assert all(agree(a, b).all() for a, b in zip(ours, burn))


@pytest.mark.parametrize("op", BINARY)
def test_no_op_of_two_operands_differs_elsewhere(op: str) -> None:
    """What the page shows of one operand of a symmetric op it means of the other too."""
    lhs, rhs = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(GRID[::2], GRID[::2]))
    (_, *slopes), (_, *burn_slopes) = both(op, lhs, rhs)
    differ = {i for i in (0, 1) if not agree(slopes[i], burn_slopes[i]).all()}
    assert bool(differ) == bool(listed(op))
    assert listed(op) <= differ
    if op in ("div", "remainder"):
        assert differ == listed(op)


def test_the_page_has_the_list() -> None:
    assert f"\n{table()}" in PAGE.read_text(encoding="utf-8"), "python -m tests.burn_differences"


def test_each_op_of_the_page_says_so_itself() -> None:
    """And no other does: `ckpt ops NAME` and the page name the same ops."""
    told = {name for name, op in descriptions().items() if op.differs}
    assert told == {d.op for d in DIFFERENCES}
