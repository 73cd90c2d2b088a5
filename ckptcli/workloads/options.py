"""What the command line says of a workload: one field an option, with its help and its bounds.

The commands make their options from these fields, so that a workload that needs another one adds
a line here. No array library is imported, so that a help text costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from ckptcli.backends.dtypes import DTYPES
from ckptcli.errors import UsageError

MOST_NUMBERS = 100
"""In one option: each is a program of its own."""


@dataclass(frozen=True, slots=True)
class OptionText:
    """How an option is written on the command line.

    Attributes:
        help: one sentence.
        short: a one-letter flag; "" for none.
        choices: the words it takes; empty for any value of the type.
        at_least: the smallest number; None for any.
        default_text: the default in words where the value is None.
    """

    help: str
    short: str = ""
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    default_text: str = ""


def _option(default: Any, help: str, **attributes: Any) -> Any:
    return field(default=default, metadata={"text": OptionText(help, **attributes)})


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """The value of every option; each workload takes what concerns it."""

    layers: int = _option(8, "Layers of the silu network.", short="l", at_least=1)
    n: int = _option(1024, "Width: weights are n x n.", short="n", at_least=1)
    batch: int | None = _option(None, "Rows of the input.", at_least=1, default_text="n")
    dtype: str | None = _option(
        None, "Element type.", choices=tuple(DTYPES), default_text="float32; trg float64"
    )
    op: str = _option("mul", "One round of the chain.", choices=("mul", "add", "trg"))
    rounds: int | None = _option(None, "Rounds of the chain.", at_least=1, default_text="18; trg 4")
    merge: str = _option(
        "shared", "How the chain's histories merge.", choices=("shared", "copy", "left")
    )
    seed: int = _option(0, "Seed of the weights and the input.", at_least=0)
    steps: str = _option("20", "Steps of the trg; several for some commands, 1..8,20.")
    chi: int = _option(16, "Singular values that a step of the trg keeps at most.", at_least=1)
    beta: float = _option(0.3, "Inverse temperature of the trg.", at_least=0)
    svd_eps: float = _option(1e-12, "Broadening of the svd's gradient; 0 for none.", at_least=0)


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


def option_texts() -> dict[str, tuple[OptionText, object]]:
    """Name -> how it is written, and its default; in order."""
    return {f.name: (f.metadata["text"], f.default) for f in fields(WorkloadOptions)}
