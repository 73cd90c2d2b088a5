"""Random leaves: their bits follow from the key that the node keeps, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, device
from ckptcli.autodiff.regions import checkpoint
from ckptcli.backends.random_keys import Distribution, KeyStream, RandomKey, draw
from ckptcli.errors import EngineError
from ckptcli.events import Recomputed
from tests.helpers import (
    STRATEGIES,
    backward,
    gradient,
    leaf,
    of_type,
    same_bits,
    unwatched,
    watched,
)
from tests.strict_backend import strict_device

DRAWS: dict[str, Callable[[Device], Tensor]] = {
    "uniform": lambda dev: dev.uniform([500, 8], -1.0, 3.0, "float64"),
    "normal": lambda dev: dev.normal([500, 8], 1.0, 2.0, "float64"),
    "bernoulli": lambda dev: dev.bernoulli([500, 8], 0.25, "float64"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_leaf_is_its_key(name: str) -> None:
    dev = device().autodiff()
    dev.seed(7)
    first, second = DRAWS[name](dev), DRAWS[name](dev)
    key, shape, dtype = first.node.params
    assert isinstance(key, RandomKey)
    assert (shape, dtype) == ((500, 8), "float64")
    assert (key.seed, key.index, second.node.params[0].index) == (7, 0, 1)
    assert same_bits([draw(key, first.shape)], [first.numpy()])
    assert not np.array_equal(first.numpy(), second.numpy())
    assert not first.is_tracked
    assert first.requirement.value == "None"


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [("uniform", 1.0, 4 / 12**0.5), ("normal", 1.0, 2.0), ("bernoulli", 0.25, 0.1875**0.5)],
)
def test_moments(name: str, mean: float, deviation: float) -> None:
    values = DRAWS[name](device()).numpy()
    assert values.mean() == pytest.approx(mean, abs=0.1)
    assert values.std() == pytest.approx(deviation, abs=0.1)


def test_a_draw_done_again_moves_no_stream() -> None:
    stream = KeyStream(3)
    keys = [stream.next(Distribution("normal", 0.0, 1.0)) for _ in range(3)]
    once = [draw(key, (4,)) for key in keys]
    draw(keys[0], (1000,))
    again = [draw(key, (4,)) for key in reversed(keys)]
    assert same_bits(once, reversed(again))
    assert stream.drawn == 3


def test_one_seed_gives_the_same_on_every_device() -> None:
    for make in DRAWS.values():
        on_strict, on_numpy = strict_device().autodiff(), device().autodiff()
        assert same_bits([make(on_strict).numpy()], [make(on_numpy).numpy()])


def test_devices_made_from_one_share_its_stream() -> None:
    base = device()
    base.seed(5)
    plain = base.autodiff()
    plain.uniform([2])
    assert plain.gradient_checkpointing().uniform([2]).node.params[0].index == 1
    assert plain.inner().uniform([2]).node.params[0].index == 2
    fresh = plain.watched_by(None)
    assert fresh.uniform([2]).node.params[0] == RandomKey(5, 0, Distribution("uniform", 0.0, 1.0))
    assert base.keys.drawn == 3


@pytest.mark.parametrize("seed", [-1, 2**128])
def test_a_seed_that_is_refused(seed: int) -> None:
    with pytest.raises(EngineError, match="a seed is a whole number"):
        device().seed(seed)


def test_dropout_zeroes_the_gradient_where_it_zeroes_the_value() -> None:
    results: list[list[Any]] = []
    for strategy in STRATEGIES:
        dev = unwatched(strategy)
        x = leaf(dev, np.ones((20, 10)))
        out = x.dropout(0.3)
        slope = gradient(backward((out * 2.0).sum()), x)
        np.testing.assert_array_equal(slope, 2.0 * out.numpy())
        assert 0.15 < np.mean(out.numpy() == 0.0) < 0.45
        assert dev.keys.drawn == 1
        results.append([out.numpy(), slope])
    assert same_bits(*results)


def test_dropout_does_nothing_without_autodiff_or_probability() -> None:
    x = device().tensor([1.0])
    assert x.dropout(0.5) is x
    y = device().autodiff().tensor([1.0])
    assert y.dropout(0.0) is y
    with pytest.raises(EngineError, match="from 0 to below 1"):
        y.dropout(1.0)


def test_a_region_keeps_the_key_and_draws_again() -> None:
    """The mask is computed again with the region; its bits and the stream are those of `none`."""
    outcomes, streams = [], []
    for in_region in (False, True):
        dev, recorder = watched("none")
        dev.seed(11)
        x = leaf(dev, np.linspace(-1.0, 1.0, 40).reshape(5, 8))
        block = checkpoint(two_dropouts) if in_region else two_dropouts
        out = block(x * 1.5)
        later = dev.uniform([3], dtype="float64")
        gradients = backward((out * out).sum())
        outcomes.append([out.numpy(), later.numpy(), gradient(gradients, x)])
        streams.append(dev.keys.drawn)
        drawn_again = of_type(recorder.events, Recomputed)
        assert [event.op for event in drawn_again].count("random") == (2 if in_region else 0)
    assert same_bits(*outcomes)
    assert streams == [3, 3]


def two_dropouts(x: Tensor) -> Tensor:
    return (x.dropout(0.4).exp() * x).dropout(0.2)
