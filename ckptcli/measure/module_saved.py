"""What autograd holds for a PyTorch module of the user's own: schema `ckpt.saved-module/1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "ckpt.saved-module/1"


@dataclass(frozen=True, slots=True)
class ModuleSaved:
    """One storage that autograd holds after forward.

    Attributes:
        module: path and class of the module during whose forward it was saved first.
        ops: the steps of the backward pass that hold it, by the name of their `grad_fn`.
        bytes: of the whole storage, once.
    """

    module: str
    ops: Sequence[str]
    shape: Sequence[int]
    dtype: str
    bytes: int


def saved_object(title: str, saved: Sequence[ModuleSaved]) -> dict[str, Any]:
    """The list as plain data."""
    return {
        "schema": SCHEMA,
        "module": title,
        "saved_tensors": len(saved),
        "saved_bytes": sum(storage.bytes for storage in saved),
        "saved": [asdict(storage) for storage in saved],
    }
