"""Code that a plan ends with, to be pasted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code that makes the checkpoints of a plan; `way` says by what, or where it goes."""

    way: str
    code: str
