"""What a traced program lets go of while it runs: by the ledger, to the byte."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.traced import Tensor, Tracer, grad

pytestmark = pytest.mark.usefixtures("no_collector")

ELEMENTS = 1024
TENSOR_BYTES = 8 * ELEMENTS


class Traced:
    """A tracer whose arrays are counted, and a leaf of it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.tracer = Tracer(TrackedBackend(NumpyBackend(), self.ledger))
        self.x = self.tracer.tensor(np.full(ELEMENTS, 0.3))

    def peak_bytes(self, program: Callable[[Tensor], Tensor]) -> int:
        """The most that is live beside the leaf while the value of `program` is computed."""
        value = program(self.x)
        base_bytes = self.ledger.bytes_in_use
        self.ledger.start_phase()
        self.result = value.evaluate()
        return self.ledger.peak.live_bytes - base_bytes


def negated(times: int) -> Callable[[Tensor], Tensor]:
    def program(x: Tensor) -> Tensor:
        for _ in range(times):
            x = -x
        return x

    return program


@pytest.mark.parametrize("ops", [2, 3, 50])
def test_a_chain_has_an_operand_and_a_result_live_at_a_time(ops: int) -> None:
    assert Traced().peak_bytes(negated(ops)) == 2 * TENSOR_BYTES


def test_a_value_stays_until_its_last_use() -> None:
    """-x is live until the sum at the end: beside it an operand and a result."""
    assert Traced().peak_bytes(lambda x: -x + negated(5)(-x)) == 3 * TENSOR_BYTES


def test_nothing_but_the_result_is_left() -> None:
    traced = Traced()
    before = traced.ledger.bytes_in_use
    traced.peak_bytes(negated(9))
    assert traced.ledger.bytes_in_use == before + TENSOR_BYTES
    del traced.result
    assert traced.ledger.bytes_in_use == before


@pytest.mark.parametrize("ops", [4, 40])
def test_a_gradient_of_what_needs_no_value_holds_none(ops: int) -> None:
    """The derivative of a negation reads no operand, so that the chain is not even computed."""
    traced = Traced()
    peak = traced.peak_bytes(lambda x: grad(negated(ops)(x).sum(), x))
    assert peak <= 2 * TENSOR_BYTES + 16


def test_a_checkpoint_lets_go_of_what_led_to_it() -> None:
    traced = Traced()
    y = negated(9)(traced.x)
    before = traced.ledger.bytes_in_use
    y.checkpoint()
    assert traced.ledger.bytes_in_use == before + TENSOR_BYTES
