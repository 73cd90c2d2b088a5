"""What is held after forward of a PyTorch module of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.measure.saved_list import SavedWords

SUMS = ("module", "type", "op", "line")
"""By what sums are taken."""


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

    @property
    def not_held_as(self) -> str:
        """Each counts."""
        return ""

    def words(self) -> SavedWords:
        """In the words of the list."""
        return SavedWords(
            module=self.module, op=self.op, made_at=self._line, held_by=", ".join(self.ops)
        )

    def keys(self, depth: int | None) -> Mapping[str, str]:
        """Path, class, op and line."""
        path = ".".join(self.path.split(".")[:depth])
        return {"module": path, "type": self.kind, "op": self.op, "line": self._line}

    @property
    def _line(self) -> str:
        return self.source or self.library
