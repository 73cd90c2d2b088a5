"""The points of a sweep as tasks: what each is called, where it stands, and the words that measure
it.

Invariant: two points have one key exactly if they are measured alike: the key is made of all that
determines what `ckpt run` does, the content of a file of the user's included, and of nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY_DIGITS = 20
"""Hexadecimal; two of a million points have the same with a chance of one in 10^12."""


@dataclass(frozen=True, slots=True)
class Task:
    """One point to measure.

    Attributes:
        key: its name in a folder.
        point: the value of each axis here, by the option's name.
        words: what follows `ckpt run` in a process that measures it.
        folder: where that process has to be, since words may name files.
    """

    key: str
    point: Mapping[str, Any]
    words: Sequence[str]
    folder: str


def key_of(words: Sequence[str], files: Sequence[str]) -> str:
    """The key of a point that `words` measure; `files` are those that its program is made of."""
    contents = {name: _digest(name) for name in sorted(files)}
    text = json.dumps([list(words), contents], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def files_in(texts: Sequence[str | None]) -> list[str]:
    """The files that `FILE.py:MAKE`, `graph:FILE` and their like name, of those that are there."""
    parts = [part for text in texts if text for part in (text, *text.rsplit(":", 1), _tail(text))]
    return sorted({part for part in parts if part and os.path.isfile(part)})


def _tail(text: str) -> str:
    """What follows the first colon, without the number of a case."""
    return text.partition(":")[2].partition("#")[0]


def _digest(name: str) -> str:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()
