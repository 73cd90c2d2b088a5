"""What the engine warns of in a pass, as notes for whoever reads its figures.

A warning of anything else, such as a user's program, is shown as Python shows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ckptcli.errors import UntrackedBackwardWarning


@contextmanager
def engine_warnings() -> Iterator[list[str]]:
    """A list that has, after the block, each warning of the engine's once and in order."""
    notes: list[str] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UntrackedBackwardWarning)
            yield notes
    finally:
        notes += dict.fromkeys(str(w.message) for w in caught if _is_the_engines(w))
        for other in caught:
            if not _is_the_engines(other):
                warnings.showwarning(other.message, other.category, other.filename, other.lineno)


def _is_the_engines(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, UntrackedBackwardWarning)
