"""What is found where a PyTorch module's checkpoints compute again: ops, and state that moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An op inside a checkpoint.

    Attributes:
        block: paths of the outermost modules that the checkpoint calls.
        checkpoint: the how manieth of the pass it is, from 1.
        module: the path of the module in whose forward the op is.
        op: its name, as in `aten.NAME`.
        index: the how manieth op of the checkpoint, views left out, from 0.
        source: `FILE:LINE` of the user's line that led to it; where none did, of the innermost line
            of a library beside PyTorch; "" without one.
        library: the same of the innermost Python line, which may be PyTorch's.
    """

    block: Sequence[str]
    checkpoint: int
    module: str
    op: str
    index: int
    source: str
    library: str

    def __str__(self) -> str:
        at = self.source or self.library
        beside = f" ({self.library})" if self.library not in ("", at) else ""
        inside = "" if self.module in self.block else f", in `{self.module}`"
        return (
            f"block {block_name(self.block)}{inside}, op {self.index} (aten.{self.op}) at "
            f"{at}{beside}"
        )


def block_name(block: Sequence[str]) -> str:
    """The first and the last of the modules under one checkpoint."""
    if not block:
        return "(module)"
    return f"`{block[0]}`" + (f" to `{block[-1]}`" if len(block) > 1 else "")


@dataclass(frozen=True, slots=True)
class Moved:
    """State that a checkpoint does not set back.

    Attributes:
        kind: `buffer`, `attribute`, `generator`, `global` or `random state`.
        name: what it is called.
        blocks: of each block that it is seen in, the paths of the outermost modules.
        is_moved: whether the forward of a block moves it.
        is_moved_again: whether computing the block again moves it too.
        is_apart: whether it is another when that begins than when the forward began.
        values: of a number or text, what it is when the forward begins, and when it is computed
            again; None for others.
    """

    kind: str
    name: str
    blocks: Sequence[Sequence[str]]
    is_moved: bool
    is_moved_again: bool
    is_apart: bool
    values: tuple[str, str] | None
