"""What a kernel allocates inside itself counts for the call that did it, and for no other."""

from __future__ import annotations

import numpy as np
import pytest

from ckptcli import device
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.backends.workspace import Workspaces


@pytest.mark.usefixtures("no_collector")
def test_the_temporaries_of_one_call_are_not_those_of_a_later_one() -> None:
    """A negation of few elements needs none, whatever a function of many needed before it."""
    ledger = Ledger(Workspaces())
    dev = device().autodiff().watched_by(None, TrackedBackend(NumpyBackend(), ledger))
    many, few = dev.tensor(np.zeros(100_000)), dev.tensor(np.zeros(4096))
    ledger.start_phase()
    many.gelu()
    with_temporaries = ledger.peak.with_workspace_bytes
    assert with_temporaries is not None
    assert with_temporaries > ledger.peak.live_bytes
    ledger.start_phase()
    negated = -few
    assert ledger.peak.with_workspace_bytes == ledger.peak.live_bytes == ledger.bytes_in_use
    del negated
