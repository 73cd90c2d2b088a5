"""What holds for every test."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and children would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is released is released by its last reference."""
    gc.disable()
    yield
    gc.enable()
