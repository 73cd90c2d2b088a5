"""Dropout in regions: faults that checkpointing has had in public. The numbers are the threads'."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.policies import (
    Policy,
    everything_saveable,
    nothing_saveable,
    save_only_these_names,
)
from tests.helpers import backward, gradient, held_ids, leaf, nodes_behind, same_bits, unwatched

DATA = np.linspace(0.5, 1.5, 400).reshape(20, 20)
REGIONS = ["none", "balanced", "remat", "remat:every=2", "remat:every=3", "sqrt", "segments:1"]


def network(strategy: str, layers: int = 6) -> tuple[list[Any], int]:
    """What dropout layers give: the values in the end, the gradient; and how often was drawn."""
    dev = unwatched(strategy)
    dev.seed(5)
    x = leaf(dev, DATA)
    h = x
    for _ in dev.layers(layers):
        h = (h * h.tanh()).dropout(0.1)
    later = dev.uniform([4], dtype="float64")
    return [h.numpy(), gradient(backward(h.sum()), x), later.numpy()], dev.keys.drawn


@pytest.mark.parametrize("strategy", REGIONS)
def test_every_strategy_gives_the_bits_of_none(strategy: str) -> None:
    """guided-diffusion#167, OLMo-core#828: other masks in the recomputation, the loss diverged."""
    found, drawn = network(strategy)
    expected, drawn_by_none = network("none")
    assert same_bits(found, expected)
    assert drawn == drawn_by_none == 7


@pytest.mark.parametrize("strategy", REGIONS)
def test_the_gradient_is_zero_where_the_value_is(strategy: str) -> None:
    """pytorch#190717: the mask of the recomputation differed under a small budget."""
    (value, slope, _), _ = network(strategy)
    assert ((slope == 0.0) == (value == 0.0)).all()
    assert 0.2 < np.mean(value == 0.0) < 0.7


def test_the_next_step_draws_the_same_whatever_was_computed_again() -> None:
    """pytorch#14253: recomputing one region moved the stream of the next step."""

    def steps(policy: Policy | None) -> list[Any]:
        dev = unwatched("none")
        dev.seed(3)
        x = leaf(dev, DATA)
        seen = []
        for _ in range(3):
            with nullcontext() if policy is None else x.region("first", policy):
                h = (x * x).dropout(0.5).sin()
            with nullcontext() if policy is None else x.region("second", policy):
                h = (h * 2.0).dropout(0.5).exp()
            seen += [h.numpy(), gradient(backward(h.sum()), x)]
        return seen

    assert same_bits(steps(nothing_saveable), steps(None))
    assert same_bits(steps(everything_saveable), steps(None))


def test_a_region_holds_the_key_and_no_mask() -> None:
    """jax#17982: the mask was kept, not the key, and memory doubled."""
    dev = unwatched("none")
    x = leaf(dev, DATA)
    h = x.exp()
    y = checkpoint(lambda value: value.dropout(0.5).sin())(h).sum()
    assert held_ids(y) == {x.node.id, h.node.id}
    draws = [node for node in nodes_behind(y) if node.op is not None and node.op.name == "random"]
    assert len(draws) == 1


def test_a_mask_can_be_saved_by_its_policy() -> None:
    """pytorch#81448: what is dear to draw may be kept instead."""
    dev = unwatched("none")
    x = leaf(dev, DATA)

    def block(value: Tensor) -> Tensor:
        mask = checkpoint_name(dev.bernoulli(value.shape, 0.5, value.dtype), "mask")
        return (value * mask).sin()

    y = checkpoint(block, save_only_these_names("mask"))(x)
    masks = {
        node.id for node in nodes_behind(y) if node.op is not None and node.op.name == "random"
    }
    assert masks
    assert masks <= held_ids(y.sum())
    slope = gradient(backward(y.sum()), x)
    assert ((slope == 0.0) == (y.numpy() == 0.0)).all()


def test_dropout_in_nested_regions_draws_one_mask() -> None:
    """pytorch#14253, for nested regions: computed again twice, the same both times."""

    def program(region: Any) -> list[Any]:
        dev = unwatched("none")
        dev.seed(9)
        x = leaf(dev, DATA)
        inner = region(lambda h: (h * h).dropout(0.4).sin())
        y = region(lambda h: inner(h.dropout(0.2)).exp())(x)
        return [y.numpy(), gradient(backward(y.sum()), x)]

    assert same_bits(program(checkpoint), program(lambda function: function))
