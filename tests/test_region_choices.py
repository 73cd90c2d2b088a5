"""Faults that checkpointing has had in public: policies, names, strategies that did nothing.

The references are those of the public threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor, device
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.policies import (
    dots_saveable,
    dots_with_no_batch_dims_saveable,
    everything_saveable,
    save_only_these_names,
)
from ckptcli.errors import DeviceError, UnknownNameError
from ckptcli.events import Recorder
from tests.helpers import backward, gradient, held_ids, leaf, unwatched, watched
from tests.regions import X, recomputed_ops, run

W = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [0.2, 0.1, 0.9]]


def test_a_constant_policy_of_the_user_is_asked() -> None:
    """jax remat3 ignores such callables silently; here it decides."""
    asked: list[str] = []

    def save_sines(value: Any) -> bool:
        asked.append(value.op)
        return bool(value.op == "sin")

    def program(x: Tensor) -> Tensor:
        return checkpoint(lambda h: h.exp().sin().cos().tanh(), policy=save_sines)(x).sum()

    _, again = run(program, X)
    assert asked == ["exp", "sin", "cos", "tanh"]
    assert again == ["exp", "cos"]


def test_a_policy_entry_that_matches_nothing_is_an_error() -> None:
    """pytorch#176065: an entry without `.default` never matched and all was computed again."""
    with pytest.raises(UnknownNameError, match="dots_savable"):
        unwatched("remat:policy=dots_savable")


def test_an_option_with_a_wrong_key_is_an_error() -> None:
    """DeepSpeed#522: an option that needs another one did nothing."""
    with pytest.raises(UnknownNameError, match="evry"):
        unwatched("remat:evry=2")


def test_a_misspelt_name_saves_nothing_and_changes_no_gradient() -> None:
    """jax#23869: a name that matches no value; the lint says so."""

    def program(x: Tensor) -> Tensor:
        policy = save_only_these_names("residul")
        block = checkpoint(lambda h: checkpoint_name(h.exp(), "residual").sin(), policy=policy)
        return block(x).sum()

    (found,), again = run(program, X)
    assert again == ["exp"]
    assert found.tolist() == (np.cos(np.exp(X)) * np.exp(X)).tolist()


def test_an_output_known_by_name_is_held_once() -> None:
    """jax#23869: the block's output by name did nothing; it is held already, and only once."""

    def held(policy_name: str) -> int:
        dev = unwatched("none")
        x = leaf(dev, X)
        block = checkpoint(
            lambda h: checkpoint_name(h.exp().sin(), "out"),
            policy=save_only_these_names(policy_name),
        )
        return len(held_ids(block(x).cos().sum()))

    assert held("out") == held("other") == 2


def test_fused_products_count_as_dots() -> None:
    """TransformerEngine#2003: fused products were not seen by the dots policies."""
    for policy in (dots_saveable, dots_with_no_batch_dims_saveable):
        (_, _), again = run(
            lambda x, w, policy=policy: checkpoint(lambda h: h.matmul(w).sin(), policy=policy)(
                x
            ).sum(),
            X,
            W,
        )
        assert again == []


def test_saving_everything_is_as_without_a_region() -> None:
    """pytorch#161889: a region without effect can be told by its counts."""
    dev = unwatched("none")

    def program(region: bool) -> Tensor:
        x, w = leaf(dev, X), leaf(dev, W)
        block = lambda h: h.matmul(w).sigmoid().exp()  # noqa: E731
        return (checkpoint(block, policy=everything_saveable) if region else block)(x).sum()

    counts = [len(held_ids(program(region))) for region in (True, False)]
    assert counts[0] == counts[1]


def test_unary_products_count_each_storage_once() -> None:
    """pytorch: x * x registers one tensor twice; its value is held once and used twice."""
    dev, _ = watched("none")
    x = leaf(dev, X)
    h = x.exp()
    with x.region("square"):
        y = h * h
    root = y.sin().sum()
    assert held_ids(root) == {x.node.id, h.node.id, y.node.id}
    assert gradient(backward(root), x).shape == (1, 3)


def test_a_device_without_a_tape_has_no_regions() -> None:
    x = device().tensor(X)
    with pytest.raises(DeviceError, match="needs a tape"), x.region("r"):
        pass
    with pytest.raises(DeviceError, match="needs a tape"):
        checkpoint(lambda h: h.sin())(x)


def test_a_region_on_a_balanced_device() -> None:
    """burn#2997: values that the strategy computes again go in and come out of the region."""
    recorder = Recorder()
    dev = device().autodiff().gradient_checkpointing("balanced").watched_by(recorder)
    x = leaf(dev, X)
    y = x.exp()
    with x.region("r"):
        z = (y + 1.0).sin()
    found = gradient(backward((z.exp() * z).sum()), x)
    value = np.sin(np.exp(X) + 1.0)
    expected = np.exp(value) * (value + 1.0) * np.cos(np.exp(X) + 1.0) * np.exp(X)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert sorted(recomputed_ops(recorder.events)) == ["add_scalar", "exp", "exp"]
