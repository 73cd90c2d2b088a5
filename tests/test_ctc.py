"""The connectionist temporal classification loss against the sum over every alignment."""

from __future__ import annotations

import math
from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ckptcli.errors import ShapeError
from ckptcli.events import Retrieved
from tests.helpers import STRATEGIES, backward, gradient, leaf, of_type, unwatched, watched

Array = NDArray[Any]


def spelt(alignment: tuple[int, ...], blank: int) -> list[int]:
    return [label for label, _ in groupby(alignment) if label != blank]


def by_alignments(log_probs: Array, target: list[int], blank: int) -> tuple[float, Array]:
    """The loss of one sample, [time, classes], and its gradient."""
    total = 0.0
    shares = np.zeros_like(log_probs)
    for alignment in product(range(log_probs.shape[1]), repeat=len(log_probs)):
        if spelt(alignment, blank) == target:
            probability = math.exp(sum(log_probs[t, c] for t, c in enumerate(alignment)))
            total += probability
            for t, c in enumerate(alignment):
                shares[t, c] += probability
    return (-math.log(total), -shares / total) if total else (math.inf, 0.0 * shares)


def normalised(shape: tuple[int, ...], seed: int = 0) -> Array:
    x = np.random.Generator(np.random.PCG64(seed)).normal(0.0, 2.0, shape)
    return np.asarray(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


# Shape of log_probs, targets of each sample, input lengths, blank.
PROBLEMS: dict[str, tuple[tuple[int, int, int], list[list[int]], list[int], int]] = {
    "one step": ((1, 1, 2), [[1]], [1], 0),
    "nothing to spell": ((3, 1, 3), [[]], [3], 0),
    "a label twice": ((4, 1, 2), [[1, 1]], [4], 0),
    "just enough steps": ((3, 1, 3), [[1, 1]], [3], 0),
    "another blank": ((5, 2, 3), [[0, 1], [1, 1]], [5, 5], 2),
    "all lengths": ((5, 4, 4), [[1, 2, 1], [3], [], [2, 2]], [5, 2, 3, 4], 0),
    "one that cannot be": ((4, 3, 3), [[1, 2], [1, 1, 1], [2]], [4, 4, 1], 0),
}


def arguments(targets: list[list[int]], pad: int = 0) -> tuple[list[list[int]], list[int]]:
    lengths = [len(target) for target in targets]
    width = max(lengths)
    return [target + [pad] * (width - len(target)) for target in targets], lengths


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_loss_and_gradient_are_those_of_all_alignments(name: str, strategy: str) -> None:
    shape, targets, input_lengths, blank = PROBLEMS[name]
    padded, lengths = arguments(targets, pad=-1)
    log_probs = normalised(shape)
    x = leaf(unwatched(strategy), log_probs)
    out = (x * 1.0).ctc_loss(padded, input_lengths, lengths, blank)
    factors = np.arange(1.0, 1.0 + shape[1])
    actual = gradient(backward(out * leaf(x.device, factors, tracked=False)), x)
    for n, (target, steps) in enumerate(zip(targets, input_lengths)):
        loss, slope = by_alignments(log_probs[:steps, n], target, blank)
        assert out.numpy()[n] == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(actual[:steps, n], factors[n] * slope, rtol=1e-10, atol=1e-14)
        np.testing.assert_array_equal(actual[steps:, n], 0.0)


def test_through_a_log_softmax_the_gradient_is_probability_minus_share() -> None:
    """What Burn's backends with a backward of their own give at once."""
    logits = normalised((4, 1, 3)) + 5.0
    x = leaf(unwatched("balanced"), logits)
    actual = gradient(backward(x.log_softmax(2).ctc_loss([[2, 1]], [4], [2])), x)
    log_probs = normalised((4, 1, 3))
    _, slope = by_alignments(log_probs[:, 0], [2, 1], 0)
    np.testing.assert_allclose(actual[:, 0], np.exp(log_probs[:, 0]) + slope, rtol=1e-10)


def test_a_class_that_is_impossible_does_no_harm() -> None:
    log_probs = normalised((4, 1, 3))
    log_probs[1, 0, 0] = log_probs[2, 0, 1] = -np.inf
    x = leaf(unwatched("none"), log_probs)
    out = x.ctc_loss([[1, 2]], [4], [2])
    loss, slope = by_alignments(log_probs[:, 0], [1, 2], 0)
    assert out.item() == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(gradient(backward(out), x)[:, 0], slope, rtol=1e-10, atol=1e-14)


def test_a_sample_without_an_alignment_gets_no_gradient() -> None:
    """Whatever comes back to its infinite loss."""
    x = leaf(unwatched("none"), normalised((2, 1, 2)))
    out = x.ctc_loss([[1, 1]], [2], [2])
    np.testing.assert_array_equal(out.numpy(), [np.inf])
    np.testing.assert_array_equal(gradient(backward((out * out).sum()), x), np.zeros((2, 1, 2)))


def test_long_inputs_neither_vanish_nor_overflow() -> None:
    steps = 2000
    x = leaf(unwatched("none"), np.full((steps, 1, 2), math.log(0.5)))
    out = x.ctc_loss([[1]], [steps], [1])
    alignments = steps * (steps + 1) / 2
    assert out.item() == pytest.approx(steps * math.log(2.0) - math.log(alignments), rel=1e-12)
    sums = gradient(backward(out), x).sum(axis=2)
    np.testing.assert_allclose(sums, np.full((steps, 1), -1.0), rtol=1e-9)


def test_it_keeps_its_input() -> None:
    dev, recorder = watched("none")
    x = leaf(dev, normalised((3, 1, 2))) * 1.0
    backward(x.ctc_loss([[1]], [3], [1]))
    assert [event.node_id for event in of_type(recorder.events, Retrieved)] == [x.node.id]


@pytest.mark.parametrize(
    ("shape", "call", "reason"),
    [
        ((3, 2), ([[1]], [3], [1]), "rank 3"),
        ((0, 1, 2), ([[1]], [3], [1]), "with a time step"),
        ((3, 1, 2), ([1], [3], [1]), r"targets for 1 sample\(s\)"),
        ((3, 1, 2), ([[1]], [3, 3], [1]), "needs 1 input_lengths"),
        ((3, 1, 2), ([[1]], [4], [1]), "input_lengths outside of 1 to 3"),
        ((3, 1, 2), ([[1]], [0], [1]), "input_lengths outside of 1 to 3"),
        ((3, 1, 2), ([[1]], [3], [2]), "target_lengths outside of 0 to 1"),
        ((3, 1, 2), ([[2]], [3], [1]), "an index outside of 0 to 1"),
        ((3, 1, 2), ([[0]], [3], [1]), "the blank 0 among its targets"),
        ((3, 1, 2), ([[1]], [3], [1], 2), "its blank 2 outside of 0 to 1"),
    ],
)
def test_what_does_not_fit(shape: tuple[int, ...], call: Any, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        leaf(unwatched("none"), np.zeros(shape)).ctc_loss(*call)
