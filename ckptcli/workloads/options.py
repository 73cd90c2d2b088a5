"""What the command line says of a workload: one field an option, with its help and its bounds.

The commands make their options from these fields, so that a workload that needs another one adds
a line here. No array library is imported, so that a help text costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ckptcli.backends.dtypes import DTYPES


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
    dtype: str = _option("float32", "Element type.", choices=tuple(DTYPES))
    op: str = _option("mul", "One round of the chain.", choices=("mul", "add", "trg"))
    rounds: int | None = _option(None, "Rounds of the chain.", at_least=1, default_text="18; trg 4")
    merge: str = _option(
        "shared", "How the chain's histories merge.", choices=("shared", "copy", "left")
    )
    seed: int = _option(0, "Seed of the weights and the input.", at_least=0)


def option_texts() -> dict[str, tuple[OptionText, object]]:
    """Name -> how it is written, and its default; in order."""
    return {f.name: (f.metadata["text"], f.default) for f in fields(WorkloadOptions)}
