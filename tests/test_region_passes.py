"""Faults that checkpointing has had in public: lifetimes, several passes, nesting, exceptions.

The references are those of the public threads.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor, device
from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.policies import everything_saveable, save_only_these_names
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import CheckpointError, ConsumedNodeError, ShapeError
from ckptcli.events import Event, StepStarted
from ckptcli.graph import Bound
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import backward, gradient, leaf, recomputed, unwatched, watched
from tests.regions import Program, X, own_output, recomputed_ops, run, runs_again


def accounted(strategy: str = "none", sink: Any = None) -> tuple[Device, Ledger]:
    ledger = Ledger()
    dev = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    return dev.watched_by(sink, TrackedBackend(NumpyBackend(), ledger)), ledger


def deep_block(x: Tensor) -> Tensor:
    h = checkpoint_name((x + 1.0).sin(), "h")
    return checkpoint(lambda y: y.exp().cos(), policy=save_only_these_names("h"))(h).tanh() * h


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("policy", [None, save_only_these_names("h"), everything_saveable])
def test_nothing_is_left_after_fifty_passes(policy: Any) -> None:
    """pytorch#161186, #154642, #84413: clean-up skipped, and cycles that wait for the collector."""
    options = {} if policy is None else {"policy": policy}
    block = checkpoint(deep_block, **options)
    dev, ledger = accounted()
    x = leaf(dev, X)
    levels = []
    for _ in range(50):
        gradients = backward(block(block(x)).sum())
        del gradients
        levels.append(ledger.bytes_in_use)
    assert set(levels) == {x.value.nbytes}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("strategy", ["remat", "remat:every=3,names=p+h", "sqrt"])
def test_nothing_is_left_after_passes_of_the_silu_network(strategy: str) -> None:
    """pytorch#161186: live bytes after each backward pass are constant."""
    dev, ledger = accounted(strategy)
    network = SiluWorkload(6, 8).load(dev)
    before = ledger.bytes_in_use
    for _ in range(10):
        result = network.forward()
        gradients = result.root.backward()
        del result, gradients
        assert ledger.bytes_in_use == before


@pytest.mark.usefixtures("no_collector")
def test_a_forward_pass_without_a_backward_pass_leaves_nothing() -> None:
    """pytorch#82776: the graph of an unused region was kept by a cycle."""
    dev, ledger = accounted()
    x = leaf(dev, X)
    policy = save_only_these_names("h", "late")
    y = checkpoint(deep_block, policy=policy)(x)
    with x.region("late names", policy):
        z = y.exp()
        checkpoint_name(y, "h")
        w = z.sin()
        checkpoint_name(z, "late")
    assert ledger.bytes_in_use > x.value.nbytes
    del y, z, w
    assert ledger.bytes_in_use == x.value.nbytes


class _Levels:
    """What is live when a step begins, in bytes."""

    def __init__(self) -> None:
        self.ledger: Ledger | None = None
        self.levels: list[int] = []

    def emit(self, event: Event) -> None:
        if isinstance(event, StepStarted) and self.ledger is not None:
            self.levels.append(self.ledger.bytes_in_use)


def test_each_recomputed_value_is_released_after_its_last_use() -> None:
    """pytorch#104605: recomputed data stayed until the end of the pass."""
    levels = _Levels()
    dev, levels.ledger = accounted(sink=levels)
    x = leaf(dev, np.linspace(0.0, 1.0, 1000))

    def chain(h: Tensor) -> Tensor:
        for _ in range(6):
            h = h.sin()
        return h

    root = checkpoint(chain)(x).sum()
    gradients = backward(root)
    del gradients
    # sum, then the last sin, which has the other five computed again; each step drops one.
    first_sin = levels.levels[2:]
    assert np.diff(first_sin).tolist() == [-8000] * (len(first_sin) - 1)


def test_an_inner_value_is_released_before_the_outer_ones() -> None:
    """pytorch#104605, for nested regions: the ledger is back at what the user holds."""
    dev, ledger = accounted()
    x = leaf(dev, X)
    block = checkpoint(lambda h: checkpoint(lambda y: y.sin().exp().sin())(h.cos()).tanh())
    gradients = backward(block(x).sum())
    assert ledger.bytes_in_use == 2 * x.value.nbytes  # and the gradient
    assert len(gradients) == 1


def test_remat_inside_remat_runs_no_value_twice_at_one_level() -> None:
    """jax#2737: two evaluations forward, three in backward; no redundant ones."""

    def build(region: Any) -> Program:
        return lambda x: region(lambda h: own_output(region(own_output)(h)))(x).sum()  # type: ignore[no-any-return]

    assert runs_again(build, X) == ["own"] * 3


def test_three_levels_with_policies() -> None:
    """jax#10497, marin#906: nested regions cost what their policies say, once for each level."""

    def build(region: Any) -> Program:
        def inner(h: Tensor) -> Tensor:
            return checkpoint_name(h.exp(), "e").sin().cos()

        def middle(h: Tensor) -> Tensor:
            return region(inner, policy=save_only_these_names("e"))(h.tanh()).sin()

        def outer(h: Tensor) -> Tensor:
            return region(middle, policy=save_only_these_names("e"))(h.cos()).exp()

        return lambda x: region(outer)(x * 2.0).sum()  # type: ignore[no-any-return]

    again = runs_again(build, X)
    # `outer` runs cos, tanh, exp and what follows once; `middle` runs tanh and on again, but for
    # exp, which it saves; `inner` runs sin again and finds exp saved.
    assert again.count("cos") == 3
    assert again.count("exp") == 1
    assert again.count("tanh") == 2


def test_a_value_that_the_inner_policy_saves_alone_belongs_to_the_outer_region() -> None:
    """jax: the region around decides too."""

    def program(x: Tensor) -> Tensor:
        inner = checkpoint(
            lambda h: checkpoint_name((h + 1.0).exp(), "e").sin().cos(),
            policy=save_only_these_names("e"),
        )
        return checkpoint(inner)(x).sum()

    _, again = run(program, X)
    assert again.count("exp") == 1  # by the outer region; the inner one finds it there
    assert again.count("sin") == 1


def test_two_passes_over_two_outputs_of_one_region() -> None:
    """pytorch retain_graph, hyper-parallel#205: each pass takes what is its own."""
    dev, recorder = watched("none")
    x, c = leaf(dev, X), leaf(dev, X, False)
    with x.region("both"):
        shared = c.exp()
        a = ((x + 1.0) * shared).sin()
        b = ((x + 2.0) * shared).cos()
    first = gradient(backward(a.sum()), x)
    assert recomputed_ops(recorder.events) == ["exp", "add_scalar", "mul"]
    second = gradient(backward(b.sum()), x)
    assert recomputed_ops(recorder.events)[3:] == ["exp", "add_scalar", "mul"]
    shared_value = np.exp(X)
    data = np.asarray(X)
    np.testing.assert_allclose(first, shared_value * np.cos((data + 1) * shared_value), rtol=1e-14)
    np.testing.assert_allclose(
        second, -shared_value * np.sin((data + 2) * shared_value), rtol=1e-14
    )


def test_what_the_first_pass_does_not_need_is_still_there_for_the_second() -> None:
    """hyper-parallel#205: an exposed inner value after a pass over a later one."""
    dev = unwatched("none")
    x = leaf(dev, X)
    with x.region("r"):
        u, v = (x + 1.0).sin(), (x + 2.0).cos()
        w = u * v
        z = v.exp()
    assert gradient(backward(z.sum()), x).shape == (1, 3)
    np.testing.assert_allclose(gradient(backward(u.sum()), x), np.cos(np.asarray(X) + 1.0))
    with pytest.raises(ConsumedNodeError):
        backward(w.sum())


def test_a_second_pass_over_the_same_root_is_refused() -> None:
    """pytorch: one backward a graph; the error is ours and comes first."""
    dev = unwatched("none")
    x = leaf(dev, X)
    root = checkpoint(lambda h: h.exp().sin())(x).sum()
    backward(root)
    with pytest.raises(ConsumedNodeError):
        backward(root)


def test_a_backward_pass_inside_a_region_that_is_still_open() -> None:
    """Equinox, TransformerEngine: a gradient taken in the middle of a region."""
    dev = unwatched("none")
    x, c = leaf(dev, X), leaf(dev, X, False)
    data = np.asarray(X)
    with x.region("open"):
        y = (x + 1.0) * c.exp()
        inner = gradient(backward((y * y).sum()), x)
        z = (x + 2.0).sin()
    np.testing.assert_allclose(inner, 2 * (data + 1.0) * np.exp(data) ** 2, rtol=1e-14)
    np.testing.assert_allclose(gradient(backward(z.sum()), x), np.cos(data + 2.0), rtol=1e-14)


def test_a_name_given_after_the_last_use_is_found() -> None:
    """jax#23869: an op that used the value before it was named finds it all the same."""
    dev, recorder = watched("none")
    x = leaf(dev, X)
    with x.region("late", save_only_these_names("y")):
        y = x.exp()
        z = y.sin()
        checkpoint_name(y, "y")
    found = gradient(backward(z.sum()), x)
    np.testing.assert_allclose(found, np.cos(np.exp(X)) * np.exp(X), rtol=1e-14)
    assert recomputed(recorder.events) == []


@pytest.mark.parametrize("names_first", [True, False])
def test_two_device_objects_of_one_tape(names_first: bool) -> None:
    """Equinox, pytorch#141896: an op belongs to the region whichever operand comes first."""
    first, second = device().autodiff(), device().autodiff()
    a, b = leaf(first, X), leaf(second, X)
    with a.region("r"):
        h = (a + 1.0).sin()
        root = ((b * h) if names_first else (h * b)).sin().sum()
    gradients = backward(root)
    inner = np.cos(np.asarray(X) * np.sin(np.asarray(X) + 1.0))
    np.testing.assert_allclose(gradient(gradients, b), inner * np.sin(np.asarray(X) + 1.0))
    assert gradients.wrt(a) is not None


def test_an_op_that_fails_in_a_region_leaves_the_device_usable() -> None:
    """pytorch: a failed forward pass left the generator advanced and the hooks installed."""
    dev, ledger = accounted("none")
    x, wrong = leaf(dev, X), leaf(dev, [[1.0, 2.0]])
    before = ledger.bytes_in_use
    with pytest.raises(ShapeError), x.region("outer"), x.region("inner"):
        (x.exp() + 1.0).matmul(wrong)
    assert dev.region is None
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda h: h.exp() * (1 / 0))(x)
    assert dev.region is None
    gc.collect()
    assert ledger.bytes_in_use == before
    assert dev.recomputes == dev.strategy.recomputes
    np.testing.assert_array_equal(gradient(backward(x.exp().sum()), x), np.exp(X))


@pytest.mark.parametrize("leave", ["raise", "break"])
def test_leaving_the_layers_early_closes_their_region(leave: str) -> None:
    """pytorch#161186: clean-up when the loop does not end by itself."""
    dev = unwatched("remat:every=2")
    x = leaf(dev, X)
    try:
        for layer in dev.layers(4):
            h = x.exp()
            if layer == 1 and leave == "raise":
                raise ValueError(leave)
            if layer == 1:
                break
    except ValueError:
        assert dev.region is None
    assert dev.region is None
    np.testing.assert_array_equal(gradient(backward(h.sum()), x), np.exp(X))


def failing_op(fails: Callable[[], bool]) -> Op:
    def forward(xp: Any, x: Any, params: Any) -> Any:
        if fails():
            raise RuntimeError("no luck")
        return xp.exp(x)

    return Op("flaky", Bound.COMPUTE, 1, forward, _flaky_gradient, keeps=KEEPS_INPUT)


def _flaky_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    return xp.multiply(grad, xp.exp(kept.pop()), None)


@pytest.mark.usefixtures("no_collector")
def test_an_op_that_fails_when_it_is_computed_again_names_the_region() -> None:
    """pytorch: an exception in the recomputation named neither the region nor the op."""
    calls: list[int] = []
    op = failing_op(lambda: calls.append(0) or len(calls) == 2)
    dev, ledger = accounted()
    x = leaf(dev, X)

    def attempt() -> Any:
        with x.region("third block"):
            y = unary(op, x + 1.0).sin()
        return gradient(backward(y.sum()), x)

    with pytest.raises(CheckpointError, match=r"`flaky`\) of region `third block` .* no luck"):
        attempt()
    gc.collect()
    assert ledger.bytes_in_use == x.value.nbytes
    np.testing.assert_allclose(
        attempt(), np.cos(np.exp(np.asarray(X) + 1)) * np.exp(np.asarray(X) + 1), rtol=1e-14
    )


def test_catching_every_exception_around_the_ops_changes_nothing() -> None:
    """PyTorch stops its recomputation by an exception, which a user's `except` swallowed."""

    def build(region: Any) -> Program:
        def block(h: Tensor) -> Tensor:
            h = h.exp()
            try:
                return h.sin()
            except BaseException:
                return h.cos()

        return lambda x: region(block)(x).sum()  # type: ignore[no-any-return]

    assert runs_again(build, X) == ["exp"]


def test_no_exception_steers_the_recomputation() -> None:
    """PyTorch's early stop: the pass raises nothing, not even what is caught inside."""
    dev = unwatched("remat")
    root = SiluWorkload(3, 4).load(dev).forward().root
    raised: list[object] = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if event == "exception" and argument[0] is not StopIteration:
            raised.append(argument[0])
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        backward(root)
    finally:
        sys.settrace(before)
    assert raised == []


def test_the_order_of_two_strategies_does_not_matter() -> None:
    """mflux#731: the second strategy looked worse, its predecessor's buffers were still there."""
    peaks = []
    for order in (("none", "remat"), ("remat", "none")):
        found = {}
        for strategy in order:
            dev, ledger = accounted(strategy)
            network = SiluWorkload(4, 8).load(dev)
            ledger.start_phase()
            backward(network.forward().root)
            found[strategy] = ledger.peak.live_bytes
        peaks.append(found)
    assert peaks[0] == peaks[1]
