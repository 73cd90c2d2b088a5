"""What came of one point: a record, or the reason why there is none. Both are results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a measuring process left.

    Attributes:
        text: the record as JSON, schema `ckpt.run/1`; None where it failed.
        reason: why it failed, a sentence; None where it did not.
        host: the machine that measured, by its name in its network.
    """

    text: str | None
    reason: str | None
    host: str
