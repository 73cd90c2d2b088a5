"""What is held after forward of a PyTorch module of the user's own: `ckpt.saved-module/1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "ckpt.saved-module/1"


@dataclass(frozen=True, slots=True)
class ModuleSaved:
    """One storage that is alive after forward.

    Attributes:
        module: path and class of the module during whose forward it was made.
        ops: the steps of the backward pass that hold it, by the name of their `grad_fn`,
            `checkpoint` for an argument of one, or else the role and name of what holds it, as in
            `argument cache`; not what a checkpoint's policy holds.
        shape: of the tensor that it was made for; views of it may have others.
        bytes: of the whole storage, once.
        path, kind: of the module alone, each.
        op: what made it, as in `aten.NAME`.
        source: `FILE:LINE` of the user's line that led to it; where none did, of the innermost line
            of a library beside PyTorch; "" without one.
        library: the same of the innermost Python line, which may be PyTorch's.
    """

    module: str
    ops: Sequence[str]
    shape: Sequence[int]
    dtype: str
    bytes: int
    path: str = ""
    kind: str = ""
    op: str = ""
    source: str = ""
    library: str = ""


@dataclass(frozen=True, slots=True)
class SavedTotal:
    """What is held together.

    Attributes:
        key: the path, class, op or line.
        tensors: how many storages.
        bytes: of all of them.
        share: of all that is held, from 0 to 1.
    """

    key: str
    tensors: int
    bytes: int
    share: float


def _of_path(saved: ModuleSaved, depth: int | None) -> str:
    return ".".join(saved.path.split(".")[:depth])


TOTALS: dict[str, Callable[[ModuleSaved, int | None], str]] = {
    "module": _of_path,
    "type": lambda saved, depth: saved.kind,
    "op": lambda saved, depth: saved.op,
    "line": lambda saved, depth: saved.source or saved.library,
}
"""By what sums are taken."""

Held = Sequence[ModuleSaved] | str
"""What a strategy holds, largest first; or why it has nothing."""


def saved_bytes(saved: Sequence[ModuleSaved]) -> int:
    """Of all of them."""
    return sum(storage.bytes for storage in saved)


def totals_by(saved: Sequence[ModuleSaved], by: str, depth: int | None = None) -> list[SavedTotal]:
    """The sums by `module`, `type`, `op` or `line`, largest first; of paths the first `depth`
    names, all where it is None.
    """
    whole = saved_bytes(saved)
    groups: dict[str, list[ModuleSaved]] = {}
    for storage in saved:
        groups.setdefault(TOTALS[by](storage, depth), []).append(storage)
    totals = [
        SavedTotal(key, len(group), saved_bytes(group), saved_bytes(group) / whole if whole else 0)
        for key, group in groups.items()
    ]
    return sorted(totals, key=lambda total: -total.bytes)


def saved_object(title: str, held: dict[str, Held], depth: int | None) -> dict[str, Any]:
    """The lists as plain data, that of the first strategy that has one for itself too."""
    first = next((saved for saved in held.values() if not isinstance(saved, str)), [])
    return {
        "schema": SCHEMA,
        "module": title,
        **_as_object(first, depth),
        "strategies": [
            {"strategy": name, **_as_object(saved, depth)}
            if not isinstance(saved, str)
            else {"strategy": name, "reason": saved}
            for name, saved in held.items()
        ],
    }


def _as_object(saved: Sequence[ModuleSaved], depth: int | None) -> dict[str, Any]:
    return {
        "saved_tensors": len(saved),
        "saved_bytes": saved_bytes(saved),
        "saved": [asdict(storage) for storage in saved],
        **{f"by_{by}": [asdict(t) for t in totals_by(saved, by, depth)] for by in TOTALS},
    }
