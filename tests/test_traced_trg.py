"""The traced TRG: values and gradients, bits with checkpoints, counts, and prepared segments.

The goldens are those of an independent program with a hand-written reverse sweep; up to five steps
they are the exact values of a finite torus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ckptcli.traced import Tensor, Tracer, grad
from ckptcli.traced.history import Count
from ckptcli.workloads.traced_trg import Renormalisation, initial_tensor, segments
from ckptcli.workloads.trg_tensors import kept_ranks

AfterStep = Callable[[Tensor], None]

GOLDENS = {
    (0.3, 1): (0.989991666356947, 1.667309214024310),
    (0.3, 2): (0.883259462072352, 1.277612005080205),
    (0.3, 3): (0.817582125075755, 1.023802944795144),
    (0.3, 4): (0.799095207857105, 0.844054073623856),
    (0.3, 5): (0.792026414104853, 0.744793433247367),
    (0.3, 6): (0.790768685767141, 0.712432002551333),
    (0.44, 4): (0.969045408669885, 1.562847028103843),
    (0.44, 6): (0.938686186640077, 1.487578248319039),
    (0.5, 5): (1.047407181551918, 1.749163159329992),
    (0.5, 6): (1.036632025109121, 1.745737070078361),
}
"""(beta, steps) -> lnZ/N and its derivative."""


def checkpoint(tensor: Tensor) -> None:
    tensor.checkpoint()


def ln_z(beta: Tensor, kept: Sequence[int], after_step: AfterStep | None = None) -> Tensor:
    """lnZ/N with `kept` singular values a step; `after_step` may checkpoint the tensor."""
    loop = Renormalisation(initial_tensor(beta))
    for rank in kept:
        loop.advance(rank)
        if after_step is not None:
            after_step(loop.tensor)
    return loop.value()


@pytest.mark.parametrize("merge", [None, "shared"])
@pytest.mark.parametrize(
    ("beta", "steps"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[1] > 4)) for case in GOLDENS],
)
def test_values_and_gradients(beta: float, steps: int, merge: str | None) -> None:
    tracer = Tracer(merge=merge or "shared")
    leaf = tracer.tensor([beta])
    value = ln_z(leaf, kept_ranks(steps, 16), checkpoint if merge else None)
    found = value.evaluate().item(), grad(value, leaf).evaluate().item()
    np.testing.assert_allclose(found, GOLDENS[beta, steps], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("merge", "steps"),
    [
        ("shared", 4),
        pytest.param("shared", 6, marks=pytest.mark.slow),
        ("copy", 4),
        ("ptr-eq", 4),
        pytest.param("ptr-eq", 6, marks=pytest.mark.slow),
        ("dedup", 4),
        pytest.param("dedup", 6, marks=pytest.mark.slow),
    ],
)
def test_checkpoints_change_no_bit(merge: str, steps: int) -> None:
    def bits(after_step: Any) -> list[str]:
        tracer = Tracer(merge=merge)
        beta = tracer.tensor([0.3])
        value = ln_z(beta, kept_ranks(steps, 16), after_step)
        return [float(t.evaluate().item()).hex() for t in (value, grad(value, beta))]

    assert bits(checkpoint) == bits(None)


@pytest.mark.parametrize(
    ("merge", "entries", "on_value"),
    [
        ("shared", [1, 2, 3, 4], 4),
        ("left", [1, 2, 3, 4], 1),
        ("ptr-eq", [1, 2, 3, 4], 10),
        pytest.param("ptr-eq", [1, 2, 3, 4, 5], 15, marks=pytest.mark.slow),
        ("dedup", [1, 2, 3, 4], 4),
        pytest.param("dedup", [1, 2, 3, 4, 5], 5, marks=pytest.mark.slow),
        ("copy", [1, 25, 601, 14425], 15679),
        pytest.param("copy", [1, 25, 601, 14425, 346201], 376305, marks=pytest.mark.slow),
    ],
)
def test_entries_after_each_step_and_on_the_value(
    merge: str, entries: list[int], on_value: int
) -> None:
    tracer = Tracer(merge=merge)
    beta = tracer.tensor([0.3])
    seen: list[Count] = []

    def after_step(tensor: Tensor) -> None:
        tensor.checkpoint()
        seen.append(tensor.checkpoints())

    value = ln_z(beta, kept_ranks(len(entries), 16), after_step)
    assert [count.entries for count in seen] == entries
    assert [count.graphs for count in seen] == list(range(1, len(entries) + 1))
    assert value.checkpoints().entries == on_value
    assert grad(value, beta).checkpoints() == Count(0, 0)


def test_the_left_rule_gives_a_wrong_gradient_without_a_word() -> None:
    tracer = Tracer(merge="left")
    beta = tracer.tensor([0.3])
    value = ln_z(beta, kept_ranks(4, 16), checkpoint)
    assert abs(grad(value, beta).evaluate().item() - GOLDENS[0.3, 4][1]) > 0.1


def test_the_first_tensor_is_that_of_one_spin() -> None:
    found = initial_tensor(Tracer().tensor([0.3])).evaluate()
    weights = np.sqrt([2 * np.cosh(0.3), 2 * np.sinh(0.3)])
    expected = np.einsum("i,j,k,l->ijkl", *[weights] * 4) / 2
    expected[np.indices(expected.shape).sum(0) % 2 == 1] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_the_second_derivative_through_checkpoints() -> None:
    """After one step only: later ones have singular values that differ by rounding alone."""

    def first(beta: float) -> float:
        leaf = Tracer().tensor([beta])
        return float(grad(ln_z(leaf, kept_ranks(1, 16)), leaf).evaluate().item())

    leaf = Tracer().tensor([0.3])
    second = grad(grad(ln_z(leaf, kept_ranks(1, 16), checkpoint), leaf), leaf)
    step = 1e-4
    expected = (
        8 * (first(0.3 + step) - first(0.3 - step))
        - (first(0.3 + 2 * step) - first(0.3 - 2 * step))
    ) / (12 * step)
    assert second.evaluate().item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_segments_are_prepared_once_and_give_the_same_bits(steps: int) -> None:
    loops = {}
    for keep in (False, True):
        tracer = Tracer()
        loops[keep] = segments(tracer, kept_ranks(steps, 16), keep_residuals=keep)
        compiled = tracer.compiler.compiled
        distinct = len({id(segment) for segment in loops[keep].segments})
        assert distinct == 2 + min(steps, 5)
        assert compiled == 3 * distinct
        for beta in (0.3, 0.5):
            loops[keep].value_and_gradient(np.array([beta]))
        assert tracer.compiler.compiled == compiled
    for beta in (0.3, 0.44, 0.5):
        swept = [loop.value_and_gradient(np.array([beta])) for loop in loops.values()]
        bits = {(one.value.hex(), float(one.gradient[0]).hex()) for one in swept}
        assert len(bits) == 1
        assert loops[False].value(np.array([beta])).value == swept[0].value
        if (beta, steps) in GOLDENS:
            np.testing.assert_allclose(
                [swept[0].value, swept[0].gradient[0]], GOLDENS[beta, steps], rtol=0.0, atol=1e-12
            )


def test_replay_holds_the_states_alone() -> None:
    """beta, and T_0 to T_3: what the hand-written sweep keeps, 4352 bytes."""
    loop = segments(Tracer(), kept_ranks(4, 16), keep_residuals=False)
    swept = loop.value_and_gradient(np.array([0.3]))
    assert [array.shape for array in swept.kept] == [(1,), *((d,) * 4 for d in (2, 2, 4, 4))]
    assert loop.kept_bytes(swept) == 8 + 4352
    with_residuals = segments(Tracer(), kept_ranks(4, 16), keep_residuals=True)
    residuals = with_residuals.value_and_gradient(np.array([0.3]))
    assert with_residuals.kept_bytes(residuals) >= 14_744
