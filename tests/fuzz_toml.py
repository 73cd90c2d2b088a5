"""`scripts/fuzz toml`: burn.toml files with any key and any value, found and named."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ckptcli.options.commands import options_classes
from ckptcli.options.listing import settings_of
from tests.fuzz_kit import EVIL, main, value

LOGGER = ("level", "file", "append", "stdout", "stderr", "log", "colour")
LOGGER_VALUES = ("full", "basic", True, False, "a.log", "../a.log", "/", "", "a/b", "info", "trace")
SLOW = ("processes", "layers", "n", "batch", "reps", "max-time", "warmup", "steps", "chi", "rounds")
"""What would make a command compute for long; it gets small values alone."""


def written(anything: Any) -> str:
    """A value in TOML, or something near it."""
    if isinstance(anything, float) and not math.isfinite(anything):
        return str(anything)
    if isinstance(anything, dict):
        pairs = (f"{json.dumps(key)} = {written(item)}" for key, item in anything.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(anything, list):
        return f"[{', '.join(map(written, anything))}]"
    return "nan" if anything is None else json.dumps(anything)


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """A table for the options, one for the logger, and now and then a file that is cut off."""
    known = list(settings_of(options_classes()))
    lines = ["[ckpt]"]
    for key in draw.sample(known, draw.randint(0, 4)):
        small = key in SLOW
        lines.append(f"{key} = {draw.randint(-1, 2) if small else written(value(draw))}")
    if draw.random() < 0.2:
        lines.append(f"{json.dumps(draw.choice(EVIL))} = {written(value(draw))}")
    lines.append("[autodiff.logger]" if draw.random() < 0.9 else draw.choice(("[", "[ckpt]", "a")))
    for key in draw.sample(LOGGER, draw.randint(0, 3)):
        chosen = value(draw) if draw.random() < 0.5 else draw.choice(LOGGER_VALUES)
        lines.append(f"{key} = {written(chosen)}")
    text = "\n".join(lines)
    if draw.random() < 0.1:
        text = text[: draw.randrange(len(text))]
    below = folder / "a"
    below.mkdir()
    (folder / "burn.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    named = ("--config", "burn.toml")
    return [("config",), ("log", "-l", "1", "-n", "2"), ("config", "--json", *named)]


if __name__ == "__main__":
    sys.exit(main("toml", case))
