"""What is live in a pass: by the ledger, in tensors above the parameter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ckptcli import Device, Tensor, device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.events import Event, Recomputed, StepStarted
from tests.helpers import backward

ELEMENTS = 1024
TENSOR_BYTES = 8 * ELEMENTS
SCALARS_BYTES = 16
"""The loss and the seed of its gradient, which stays one element until a step makes it whole."""


class Account:
    """The tensors above the parameter when an op has run again, and when a step starts."""

    def __init__(self, strategy: str = "none") -> None:
        self.ledger = Ledger()
        self.again: list[tuple[str, int]] = []
        self.steps: list[tuple[str, int]] = []
        base = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
        self.device: Device = base.watched_by(self, TrackedBackend(NumpyBackend(), self.ledger))
        self.x = self.device.tensor(np.full(ELEMENTS, 0.3)).require_grad()
        self.base_bytes = self.ledger.bytes_in_use

    def emit(self, event: Event) -> None:
        if isinstance(event, Recomputed):
            self.again.append((event.op, self._tensors(self.ledger.bytes_in_use)))
        elif isinstance(event, StepStarted):
            self.steps.append((event.op, self._tensors(self.ledger.bytes_in_use)))

    def peak_bytes(self, program: Callable[[Account], Tensor]) -> int:
        """The most live bytes of the backward pass, parameter and scalars not counted."""
        root = program(self)
        self.ledger.start_phase()
        gradients = backward(root)
        assert gradients.wrt(self.x) is not None
        return self.ledger.peak.live_bytes - self.base_bytes - SCALARS_BYTES

    def _tensors(self, live_bytes: int) -> int:
        return (live_bytes - self.base_bytes) // TENSOR_BYTES


def ran(program: Callable[[Tensor], Tensor]) -> Account:
    account = Account()
    root = program(account.x).sum()
    backward(root)
    return account
