"""What PyTorch writes to the process's stderr by itself, past Python: one line of it is left out.

Invariant: every other line that is written inside arrives, in order, at the end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

STDERR = 2


@contextmanager
def without_lines(words: bytes) -> Iterator[None]:
    """Inside, lines with these words are no part of what goes to stderr."""
    try:
        ours = os.dup(STDERR)
    except OSError:  # the process has none
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), STDERR)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(ours, STDERR)
            os.close(ours)
            held.seek(0)
            told = b"".join(line for line in held if words not in line)
            while told:
                told = told[os.write(STDERR, told) :]
