"""Several numbers in one option, `0.3,0.44,0.5`."""

from __future__ import annotations

import math
import re

from ckptcli.errors import UsageError

MOST_NUMBERS = 100
"""In one option: each is a row of its own."""

_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")


def decimal_numbers(name: str, text: str) -> list[float]:
    """The finite numbers in `0.3` or `0.3,0.44`, in this order.

    Raises:
        UsageError: another text, or too many numbers.
    """
    parts = text.split(",")
    for part in parts:
        if _NUMBER.fullmatch(part) is None or not math.isfinite(float(part)):
            raise UsageError(
                f"--{name} is `{text}`, and `{part}` is no finite number",
                "write one number, 0.3, or several with commas, 0.3,0.44,0.5",
            )
    if len(parts) > MOST_NUMBERS:
        raise UsageError(
            f"--{name} has {len(parts)} numbers", f"write {MOST_NUMBERS} of them at most"
        )
    return [float(part) for part in parts]
