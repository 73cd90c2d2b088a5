"""Which module is asked for, and what is said of it beside its file.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ckptcli.options.keywords import Keyword
from ckptcli.peers.module_input import DrawnInput
from ckptcli.peers.module_step import Step


@dataclass(frozen=True, slots=True)
class ModuleRequest:
    """A module to load.

    Attributes:
        text: `FILE.py:MAKE`, `PACKAGE.MODULE:MAKE`, or what messages call a step that is at hand.
        blocks: which parts are its blocks, a glob over paths or a class; None for those that are
            found.
        inputs: tensors to draw and give it, instead of what it says itself; none for that.
        dtype: what floats of the module and of its input are made; None for what they are.
        accumulate: micro-batches in a step; None as its step says.
        keywords: what `MAKE` is called with, by name.
        optimizer: one of `OPTIMIZERS`, for a step that has none; "" for none.
        step: what is asked for, where it is at hand and no file makes it.
    """

    text: str
    blocks: str | None = None
    inputs: Sequence[DrawnInput] = ()
    dtype: str | None = None
    accumulate: int | None = None
    keywords: Mapping[str, Keyword] = field(default_factory=dict)
    step: Step | None = None
    optimizer: str = ""
