"""Faults in the recomputation of the TRG: what they do to the gradient, and that they are named.

The figures of single sign flips are recorded: columns are ordered by their singular values, which
are well apart, so that they hold on every platform. How many signs a rounding error flips depends
on the LAPACK; that it does is all that is asserted of it.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli.autodiff.device import Device, device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.measure.check import Check
from ckptcli.verify.check import check
from ckptcli.verify.fault import GRAMMAR, KINDS, parse_fault
from ckptcli.verify.perturb import perturbed
from ckptcli.workloads.trg import TrgWorkload
from ckptcli.workloads.trg_tensors import kept_ranks, renormalised, trace
from tests.backend_kit import NEEDS_TORCH
from tests.trg import GOLDEN, faulty, one_blas_thread, outcome

pytestmark = pytest.mark.usefixtures(one_blas_thread.__name__)

# Of five steps, the error of the gradient by column; an svd b that is not listed has those of a.
SIGNS = {
    "1,a": (-7.59e-02, -7.59e-02),
    "2,a": (-6.99e-02, -6.35e-02, 6.61e-03, -9.40e-03),
    "3,a": (-3.36e-02, -3.38e-02, 1.62e-03, -2.18e-03),
    "4,a": (
        *(-5.20e-02, -5.21e-02, 3.57e-03, -2.29e-03, -3.21e-03, -1.53e-04, -1.56e-04, 4.71e-05),
        *(-5.45e-06, -6.51e-05, -1.44e-06, -5.68e-07, -6.54e-06, -3.89e-07, 7.58e-08, 2.33e-09),
    ),
}
FLIPS = [
    (f"{place[0]},{svd}", column)
    for place, errors in SIGNS.items()
    for column in range(len(errors))
    for svd in "ab"
]
STEPS = {"reciprocal": 5, "norm": 7, "ulp": 5, "layout": 20, "float32": 5}
"""Steps at which a fault changes some value: a sum in another order may well round to the same
number, above all one of few elements.
"""

ROUNDING = 1e-9
"""Above what a fault of one rounding moves the gradient by while every vector keeps its sign."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("place", "column"), FLIPS)
def test_a_flipped_sign_moves_the_gradient_by_the_recorded_figure(place: str, column: int) -> None:
    expected = SIGNS[f"{place[0]},a"][column]
    moved = outcome(5, "remat", f"sign:{place},{column}")[1] - GOLDEN[0.3][5][1]
    assert moved == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("column", [0, 5, 15])
def test_a_flip_in_the_last_step_moves_nothing(column: int) -> None:
    """The trace is the same for either sign, and so is its gradient."""
    assert outcome(5, "remat", f"sign:5,a,{column}") == outcome(5)


@pytest.mark.parametrize("place", ["2,b", "4,a"])
def test_all_signs_at_once_move_nothing(place: str) -> None:
    assert outcome(5, "remat", f"sign:{place},all") == outcome(5)


def test_the_columns_that_are_odd_under_a_flip_of_all_spins_move_nothing_together() -> None:
    """An element of T has an even number of odd legs, so that their signs cancel in it."""
    odd = "1+2+4+7+8+11+13+14"
    strategy = faulty("remat", f"sign:4,a,{odd}")
    both = perturbed(strategy, parse_fault(f"sign:4,b,{odd}"))
    assert gradient_under(both, 5) == pytest.approx(GOLDEN[0.3][5][1], rel=1e-12)
    assert abs(gradient_under(strategy, 5) - GOLDEN[0.3][5][1]) > 1e-2


def gradient_under(strategy: Strategy, steps: int) -> float:
    dev = device().autodiff().gradient_checkpointing(strategy).watched_by(None)
    result = TrgWorkload(steps).load(dev).forward()
    found = result.root.backward().wrt(result.parameters["beta"])
    assert found is not None
    return found.item()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", STEPS)
def test_the_value_itself_is_never_wrong(fault: str) -> None:
    assert outcome(6, "remat", fault)[0] == outcome(6)[0]


@pytest.mark.parametrize("strategy", ["remat:names=x", "remat:policy=save_only_these_names(svd)"])
def test_saving_what_signs_follow_from_protects(strategy: str) -> None:
    """The normalised tensor, or the decomposition itself, is not made from anew."""
    for fault in ("reciprocal", "layout"):
        assert outcome(6, strategy, fault)[1] == pytest.approx(GOLDEN[0.3][6][1], rel=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("eps", [1e-12, 1e-9, 1e-6, 1e-3])
def test_the_broadening_has_no_part_in_it(eps: float) -> None:
    """Right and recomputed agree bit for bit at every eps; a flip moves the gradient alike."""
    plain = outcome(5, svd_eps=eps)
    assert outcome(5, "remat", svd_eps=eps) == plain
    moved = outcome(5, "remat", "sign:4,a,0", svd_eps=eps)[1] - plain[1]
    assert moved == pytest.approx(SIGNS["4,a"][0], rel=2e-2)


def test_without_broadening_the_gradient_is_nan() -> None:
    """From five steps on, where a matrix of 256 x 256 has 16 values that are not zero."""
    value, gradient = outcome(5, svd_eps=0.0)
    assert value == pytest.approx(GOLDEN[0.3][5][0], rel=1e-12)
    assert math.isnan(gradient)


def window(first: int, steps: int, fault: str | None) -> NDArray[Any]:
    """The gradient of ln(trace) and the norms of steps after `first`, by the exact tensor there."""
    ranks = kept_ranks(first + steps, 16)
    dev = device().autodiff().watched_by(None)
    t = TrgWorkload(first).load(dev).tensor()
    for rank in ranks[:first]:
        t, _ = renormalised(t, rank, 1e-12)
    dev = device().autodiff().gradient_checkpointing(faulty("remat", fault)).watched_by(None)
    parameter = dev.tensor(t.numpy()).require_grad()
    t, total = parameter, None
    for step in dev.layers(steps):
        t, log_norm = renormalised(t, ranks[first + step], 1e-12)
        total = log_norm if total is None else total + log_norm
    assert total is not None
    found = (total + trace(t).log()).backward().wrt(parameter)
    assert found is not None
    array: NDArray[Any] = found.numpy()
    return array


@pytest.mark.parametrize("first", [2, 3])
def test_one_step_alone_is_never_wrong_and_two_are_by_the_gradients_own_size(first: int) -> None:
    one, two = (window(first, steps, None) for steps in (1, 2))
    np.testing.assert_array_equal(window(first, 1, "sign:1,a,0"), one)
    apart = np.abs(window(first, 2, "sign:1,a,0") - two).max()
    assert apart > 0.25 * np.abs(two).max()


def found_by(fault: str, steps: int = 5, strategy: str = "remat") -> Check:
    workload = TrgWorkload(steps)
    return check(workload, faulty(strategy, fault), workload)


def test_a_flip_is_named_by_step_and_column_as_a_gauge() -> None:
    found = found_by("sign:4,b,5+12")
    assert not found.passed
    (change,) = found.gauges
    assert (change.layer, change.columns, change.flipped, change.turned) == (3, 16, (5, 12), ())
    assert (change.size_error, change.vector_error) == (0.0, 0.0)
    assert "the signs of columns 5, 12: a gauge, not an error of size" in str(change)
    (_, difference), *others = found.wrong_gradients
    assert others == []
    assert difference.found - difference.expected == pytest.approx(-1.53e-4, rel=0.1)
    assert {value.layer for value in found.wrong_values} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("fault", STEPS)
def test_every_fault_is_caught(fault: str) -> None:
    """On any LAPACK: it moves the gradient or flips a sign, and by much only through a sign."""
    found = found_by(fault, STEPS[fault])
    assert not found.passed
    assert found.wrong_values
    flipped = any(change.flipped or change.turned for change in found.gauges)
    assert flipped or found.wrong_gradients
    moved = [abs(d.found - d.expected) for _, d in found.wrong_gradients]
    assert flipped or max(moved) < (1e-5 if fault == "float32" else ROUNDING)
    bound = 1e-6 if fault == "float32" else 1e-12
    assert all(change.size_error < bound for change in found.gauges)


@pytest.mark.parametrize(
    "text",
    [
        *("", "round", "sign", "sign:4,a", "sign:4,c,0", "sign:0,a,0", "sign:4,a,-1", "sign:4,a,x"),
        *("sign:4,a,1+", "sign:4,a,0,1", "reciprocal:1", "sign: 4,a,0"),
    ],
)
def test_a_fault_that_is_none_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"`{text}` is no way to perturb")) as caught:
        parse_fault(text)
    assert GRAMMAR in str(caught.value.hint)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "host"])
def test_every_fault_of_the_grammar_is_one(kind: str) -> None:
    fault = parse_fault(kind)
    strategy = perturbed(parse_strategy("remat"), fault)
    check(TrgWorkload(3), strategy, TrgWorkload(3))
    assert fault.hits > 0


def test_a_column_that_is_not_kept_is_refused() -> None:
    with pytest.raises(UsageError, match="turns column 4, and step 2 keeps 4"):
        outcome(5, "remat", "sign:2,a,4")


def test_what_nobody_computes_again_is_not_perturbed() -> None:
    for fault in ("reciprocal", "sign:1,a,0"):
        assert outcome(5, "none", fault) == outcome(5)


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("dtype", "epsilon"),
    [("float16", 2.0**-10), ("bfloat16", 2.0**-7), ("float32", 2.0**-23), ("float64", 2.0**-52)],
)
@pytest.mark.parametrize("root", [1.0, 1.25, 1.875])
def test_ulp_is_one_unit_in_the_last_place_in_every_dtype(
    dtype: str, epsilon: float, root: float
) -> None:
    """The gradient of the factor beside a root is the root, computed again."""
    base = Device(open_backend("torch")).autodiff()
    dev = base.gradient_checkpointing(faulty("balanced", "ulp")).watched_by(None)
    x, factor = (dev.tensor([value], dtype).require_grad() for value in (root**2, 1.0))
    found = (factor * x.sqrt()).backward().wrt(factor)
    assert found is not None
    assert found.item() == root + epsilon
