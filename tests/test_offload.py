"""Policies that save in the host's memory: the same bits, less on the device, every byte accounted.

In tensors of the silu network with regions of two of six layers: the products p are offloaded, and
the device holds what the regions need from outside, as under `nothing_saveable`.
"""

from __future__ import annotations

import pytest

from ckptcli import Device, Tensor, device, profile
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.backends import numpy_namespace
from ckptcli.backends.host_copy import HostCopy
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.policies import (
    OFFLOAD,
    Policy,
    described,
    dots_with_no_batch_dims_saveable,
    everything_saveable,
    nothing_saveable,
    offload_dot_with_no_batch_dims,
    parse_policy,
    save_and_offload_only_these_names,
    save_from_both_policies,
)
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.measure.rounds import Plan
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.report.console import Screen, render_run
from ckptcli.workloads.silu import SiluWorkload
from tests.backend_kit import NEEDS_TORCH, pass_outcome, torch_device
from tests.helpers import backward, gradient, leaf, recomputed, same_bits, unwatched, watched
from tests.strict_backend import strict_device
from tests.test_policies import VALUES, value

LAYERS, N = 6, 16
TENSOR_BYTES = N * N * 4
NETWORK = SiluWorkload(LAYERS, N)

PAIRS = [
    ("offload_dot_with_no_batch_dims", "dots_with_no_batch_dims_saveable"),
    ("save_and_offload_only_these_names(|p)", "save_only_these_names(p)"),
    ("save_and_offload_only_these_names(p|s)", "save_only_these_names(p,s)"),
    ("save_and_offload_only_these_names(s|h,p)", "save_only_these_names(s,h,p)"),
    (
        "save_from_both_policies(save_only_these_names(s),offload_dot_with_no_batch_dims)",
        "save_only_these_names(p,s)",
    ),
]
"""A policy that offloads, and one that saves the same values on the device."""


def test_what_the_policies_answer() -> None:
    on_device = [dots_with_no_batch_dims_saveable(v) for v in VALUES]
    assert [offload_dot_with_no_batch_dims(v) == OFFLOAD for v in VALUES] == on_device
    policy = save_and_offload_only_these_names(["a"], ["b"])
    assert [policy(value(name=n)) for n in ("a", "b", "c", None)] == [True, OFFLOAD, False, False]
    assert described(policy).names() == {"a", "b"}
    assert parse_policy("save_and_offload_only_these_names(a|b)") == policy
    assert parse_policy("save_and_offload_only_these_names( a, c | b )") == (
        save_and_offload_only_these_names(["a", "c"], ["b"])
    )
    both = save_from_both_policies(everything_saveable, policy)
    assert both(value(name="b")) is True


@pytest.mark.parametrize("text", ["", "(a)", "(a|)", "()", "(a|a)", "(a,b|b)"])
def test_names_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_policy(f"save_and_offload_only_these_names{text}")


BACKENDS = [
    pytest.param(device, id="numpy"),
    pytest.param(strict_device, id="strict"),
    pytest.param(torch_device, id="torch", marks=[NEEDS_TORCH, pytest.mark.slow]),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", BACKENDS)
@pytest.mark.parametrize("every", [1, 2, 6])
@pytest.mark.parametrize(("offloads", "saves"), PAIRS)
def test_gradients_and_recomputation_are_those_of_saving_on_the_device(
    make: type[Device], every: int, offloads: str, saves: str
) -> None:
    outcomes = [
        pass_outcome(make(), strategy, NETWORK.load)
        for strategy in (
            "none",
            f"remat:every={every},policy={saves}",
            f"remat:every={every},policy={offloads}",
        )
    ]
    (_, plain), (events, saved), (own_events, own) = outcomes
    assert same_bits(plain.values(), saved.values())
    assert same_bits(plain.values(), own.values())
    assert recomputed(own_events) == recomputed(events)


def accounted(policy: str, base: Device) -> tuple[Device, Ledger]:
    ledger = Ledger()
    strategy = parse_strategy(f"remat:every=2,policy={policy}")
    dev = base.autodiff().gradient_checkpointing(strategy)
    return dev.watched_by(None, TrackedBackend(base.backend, ledger)), ledger


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("make", BACKENDS)
def test_the_ledger_counts_what_is_on_the_host_apart(make: type[Device]) -> None:
    held = {}
    for policy in ("nothing_saveable", "offload_dot_with_no_batch_dims"):
        dev, ledger = accounted(policy, make())
        network = NETWORK.load(dev)
        base = ledger.bytes_in_use
        result = network.forward()
        held[policy] = ledger.bytes_in_use - base
        if policy != "nothing_saveable":
            assert ledger.host_bytes_in_use == LAYERS * TENSOR_BYTES
        gradients = backward(result.root)
        assert ledger.host_bytes_in_use == 0
        del result, gradients
        assert ledger.bytes_in_use == base
    assert held["offload_dot_with_no_batch_dims"] == held["nothing_saveable"]


@pytest.mark.usefixtures("no_collector")
def test_a_pass_that_never_goes_backward_lets_go_of_the_host_too() -> None:
    dev, ledger = accounted("offload_dot_with_no_batch_dims", device())
    NETWORK.load(dev).forward()
    assert ledger.host_bytes_in_use == 0


def test_the_record_and_the_screen_tell_it() -> None:
    strategy = "remat:every=2,policy=offload_dot_with_no_batch_dims"
    record = profile(NETWORK, ["none", strategy], plan=Plan(1, 0))
    none, own = record.rows
    assert (none.memory.offloaded_bytes, own.memory.offloaded_bytes) == (0, LAYERS * TENSOR_BYTES)
    assert "holds 6.0 KiB more on the host" in render_run(record, Screen())


def two_uses(dev: Device, policy: Policy) -> tuple[Tensor, Tensor]:
    """A loss over a region that uses its named value twice."""
    x = leaf(dev, [[0.3, -0.2], [0.5, 0.1]])

    def body(y: Tensor) -> Tensor:
        named = checkpoint_name(y.exp(), "a")
        return named * named.sin()

    z = checkpoint(body, policy=policy)(x)
    return x, (z * z.exp()).sum()


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_a_value_that_is_used_again_comes_back_once(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = []

    def counted(copied: HostCopy) -> object:
        back.append(copied)
        return from_host(copied)

    from_host = numpy_namespace.from_host
    monkeypatch.setattr(numpy_namespace, "from_host", counted)
    policies = [nothing_saveable, save_and_offload_only_these_names([], ["a"])]
    found = []
    for policy in policies:
        x, loss = two_uses(unwatched(strategy), policy)
        found.append(gradient(backward(loss), x))
    assert same_bits(found[:1], found[1:])
    assert len(back) == 1


@pytest.mark.parametrize("inner", [nothing_saveable, save_and_offload_only_these_names([], ["a"])])
@pytest.mark.parametrize("outer", [nothing_saveable, save_and_offload_only_these_names([], ["a"])])
def test_nested_regions(inner: Policy, outer: Policy) -> None:
    """Only what every region around it saves is held, and then on the host."""
    dev, recorder = watched("none")

    def body(y: Tensor) -> Tensor:
        return checkpoint(lambda v: checkpoint_name(v.exp(), "a").sin(), policy=inner)(y) * y

    x = leaf(dev, [0.3, 0.7])
    found = gradient(backward(checkpoint(body, policy=outer)(x).sum()), x)
    y = leaf(unwatched("none"), [0.3, 0.7])
    expected = gradient(backward((y.exp().sin() * y).sum()), y)
    assert same_bits([found], [expected])
    is_saved = inner is not nothing_saveable and outer is not nothing_saveable
    assert (1 in recomputed(recorder.events)) == (not is_saved)


def test_a_copy_on_the_host_is_no_temporary_of_the_device() -> None:
    """Beside what the ledger counts, the forward pass makes nothing of the size of a tensor."""
    strategy = parse_strategy("remat:policy=save_and_offload_only_these_names(s|p)")
    memory = memory_pass(SiluWorkload(6, 256), device(), strategy).memory
    assert memory.offloaded_bytes == 6 * 256 * 256 * 4
    assert memory.traced_peak_forward_bytes is not None
    above_bytes = memory.traced_peak_forward_bytes - memory.ledger_peak_forward_bytes
    assert 0 <= above_bytes < 256 * 256
