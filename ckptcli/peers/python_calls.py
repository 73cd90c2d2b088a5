"""Being told of every call that the interpreter makes.

Invariant: whoever was told before is told again afterwards.
Source: `sys.setprofile`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def calls_told(told: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Inside, `told(frame, event, argument)` is called for each call and each return."""
    before = sys.getprofile()
    sys.setprofile(told)
    try:
        yield
    finally:
        sys.setprofile(before)
