"""What the program ends with, in one place; `docs/commands/run.md` lists them."""

from __future__ import annotations

DONE = 0

FAILED = 1
"""Failed while running; what was complete is reported."""

USAGE = 2
"""A wrong command line or configuration."""

FAILED_CONDITION = 3
"""A condition of `--fail-on` holds."""

UNTRUSTWORTHY = 4
"""Under `--strict` a verdict is not clear."""

WRONG = 5
"""Something was computed that is not what it has to be."""

TIMED_OUT = 124
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143

STOPPED = (TIMED_OUT, HUNG_UP, INTERRUPTED, TERMINATED)
"""Ended early, with what was complete until then."""
