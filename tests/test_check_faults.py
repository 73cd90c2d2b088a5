"""Faults that a check has to fail on: a gradient that is a little wrong, and draws too many."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.ops.activation import SIGMOID
from ckptcli.backends.base import Namespace
from ckptcli.checkpoint.retriever import Retriever
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.events import Sink
from ckptcli.graph import Node
from ckptcli.measure.difference import TOLERANCE
from ckptcli.verify.check import check
from ckptcli.verify.differences import directional_differences
from ckptcli.verify.fault import parse_fault
from ckptcli.verify.perturb import perturbed
from ckptcli.workloads.silu import SiluNetwork, SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.program_kit import Opener

DOUBLE = SiluWorkload(layers=3, n=8, dtype="float64")


@pytest.fixture(params=[1e-4, 1e-5])
def sigmoid_with_a_gradient_too_large(request: pytest.FixtureRequest) -> Iterator[float]:
    """By this share, under every strategy: what is compared with `none` is the same to the bit."""
    backward, share = SIGMOID.backward, request.param

    def too_large(xp: Any, *arguments: Any) -> Any:
        return xp.multiply(backward(xp, *arguments), 1.0 + share)

    object.__setattr__(SIGMOID, "backward", too_large)
    yield share
    object.__setattr__(SIGMOID, "backward", backward)


@pytest.mark.parametrize("strategy", ["none", "balanced", "sqrt"])
def test_an_op_whose_gradient_is_a_little_too_large_fails_by_finite_differences_alone(
    sigmoid_with_a_gradient_too_large: float, strategy: str
) -> None:
    found = check(DOUBLE, parse_strategy(strategy), DOUBLE)
    assert not found.passed
    assert (found.wrong_gradients, found.wrong_values) == ((), ())
    assert found.draws[0] == found.draws[1]
    assert all(d.is_usable for d in found.differences)
    assert any(TOLERANCE < d.apart <= sigmoid_with_a_gradient_too_large for d in found.differences)


def test_a_gradient_that_a_recomputation_moved_by_a_few_parts_in_10000_does_not_agree() -> None:
    """A column's sign, turned in one step of the TRG; the difference is usable, and tells."""
    workload = TrgWorkload(5)
    fault = parse_fault("sign:4,a,5")
    (found,) = directional_differences(workload, perturbed(parse_strategy("remat"), fault))
    assert fault.hits > 0
    assert found.is_usable
    assert TOLERANCE < found.apart < 1e-3
    assert not found.agrees
    (right,) = directional_differences(workload, parse_strategy("remat"))
    assert right.apart < TOLERANCE
    assert right.agrees


class NotedWorkload(SiluWorkload):
    """The silu network; the device that it was placed on last is known to the strategy below."""

    device: Device

    def load(self, device: Device) -> SiluNetwork:
        NotedWorkload.device = device
        return super().load(device)


class DrawingAnew(BalancedCheckpointing):
    """Takes draws from the program's stream in backward, as a replayed dropout without a key does.

    No value of this program depends on them: only the count tells, and it is what the next draw of
    the program, in the next forward pass, would have been moved by.
    """

    keyword: ClassVar[str] = "drawing-anew"

    def retriever(self, steps: list[Node], namespace: Namespace, sink: Sink | None) -> Retriever:
        NotedWorkload.device.uniform((2,))
        return super().retriever(steps, namespace, sink)


def test_a_strategy_that_draws_in_backward_fails_by_the_number_of_draws_alone() -> None:
    workload = NotedWorkload(layers=3, n=8, dtype="float64")
    found = check(workload, DrawingAnew(), workload)
    assert found.draws == (1, 0)
    assert not found.passed
    assert (found.wrong_gradients, found.wrong_values) == ((), ())
    assert all(d.agrees for d in found.differences)
    assert check(workload, BalancedCheckpointing(), workload).passed


DROPOUT = """
from ckptcli.checkpoint.strategies.remat import Remat
from noted_devices import DEVICES


def make(device):
    DEVICES.append(device)
    w = device.normal((4, 4)).require_grad()

    def loss():
        h = w
        for layer in device.layers(2):
            h = h.sin() * device.bernoulli((4, 4), 0.5)
        return h.sum()

    return loss


class Replayed(Remat):
    keyword = "replayed"

    def retriever(self, steps, namespace, sink):
        DEVICES[-1].bernoulli((1,), 0.5)
        return super().retriever(steps, namespace, sink)
"""


@pytest.mark.parametrize(
    ("strategy", "code", "draws"),
    [("remat", 0, "3, as under `none`"), ("mine.py:Replayed", 5, "4, `none` takes 3")],
)
def test_the_command_counts_the_draws_of_dropout(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    strategy: str,
    code: int,
    draws: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    noted = ModuleType("noted_devices")
    vars(noted)["DEVICES"] = []
    monkeypatch.setitem(sys.modules, noted.__name__, noted)
    Path("mine.py").write_text(DROPOUT)
    assert run_command(["check", "--workload", "mine.py:make", "-s", strategy]) == code
    out = capsys.readouterr().out
    assert f"  random draws        {draws}" in out.splitlines()


AFTER_LAYERS = """
def make(device):
    w = device.tensor([1.5, 2.5]).require_grad()

    def loss():
        h = w
        for layer in device.layers(2):
            h = h.sum().sqrt().sin()
        return h.square().sum().sqrt().sin()

    return loss
"""


def test_a_wrong_value_that_is_made_after_the_layers_is_blamed_on_none(opened: Opener) -> None:
    strategy = perturbed(parse_strategy("balanced"), parse_fault("ulp"))
    found = check(opened(AFTER_LAYERS), strategy, opened(AFTER_LAYERS, dtype="float64"))
    assert sorted((wrong.op, str(wrong.layer)) for wrong in found.wrong_values) == [
        ("sqrt", "0"),
        ("sqrt", "1"),
        ("sqrt", "None"),
    ]
