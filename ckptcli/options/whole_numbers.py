"""Several whole numbers in one option, `1..8,20`."""

from __future__ import annotations

import re

from ckptcli.errors import UsageError

MOST_NUMBERS = 100
"""In one option: each is a program of its own."""


def whole_numbers(name: str, text: str) -> list[int]:
    """The numbers of at least 1 in `20` or `1..8,20`, in this order.

    Raises:
        UsageError: another text, a range that goes down, or too many numbers.
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:\.\.([0-9]{1,6}))?\s*", part)
        first, last = (0, 0) if match is None else (int(match[1]), int(match[2] or match[1]))
        if not 1 <= first <= last or len(found) + last - first >= MOST_NUMBERS:
            raise UsageError(
                f"--{name} is `{text}`, and `{part}` is no number of at least 1 and no range",
                f"write 20, 1..8 or 1..8,20, at most {MOST_NUMBERS} numbers",
            )
        found += range(first, last + 1)
    return found
