"""Which module is asked for, and what is said of it beside its file.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.peers.module_step import Step


@dataclass(frozen=True, slots=True)
class ModuleRequest:
    """A module to load.

    Attributes:
        text: `FILE.py:MAKE`, or what messages call a step that is at hand.
        blocks: which parts are its blocks, a glob over paths or a class; None for those that are
            found.
        accumulate: micro-batches in a step; None as its step says.
        step: what is asked for, where it is at hand and no file makes it.
    """

    text: str
    blocks: str | None = None
    accumulate: int | None = None
    step: Step | None = None
