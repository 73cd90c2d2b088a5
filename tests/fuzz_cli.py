"""`scripts/fuzz cli`: command lines of any options with any words."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

from ckptcli.cli.main import COMMANDS
from ckptcli.options.commands import options_class
from ckptcli.options.listing import options_of
from ckptcli.options.option import Option
from tests.fuzz_kit import EVIL, main

TRIED = ("config", "log", "saved", "check", "show", "compare", "run")
SMALL = {"layers": "1", "n": "2", "reps": "1", "warmup": "0", "max-time": "0.1", "timeout": "20"}
KEPT = ("config", "processes", *SMALL)
WORDS = (
    *("", "-", "--", "0", "-1", "1", "2", "1.5", "nan", "inf", "1e400", "9" * 30, "none", "sqrt"),
    *("balanced", "remat:policy=x", "segments:0", "segments:99", "torch", "jax", "graph:", "chain"),
    *("graph:absent", "a.py:b", "a.py", "x.json", "x.", "absent/x.csv", "time > 3", "a.b > 5%"),
    *("float16", "float64", "bfloat16", "numpy", "cuda", "cpu", "auto", "mean", "trg", "silu:2"),
    *("balanced:3", "a" * 300, "1,2", "2,1", "1..3", "always", "never", "mul", ".", "/", "~", "\t"),
    *(text for text in EVIL if "\0" not in text and "\ud800" not in text and len(text) < 1000),
)


def _words(draw: random.Random, option: Option) -> list[str]:
    if option.kind == "boolean":
        return [option.flag]
    count = 2 if option.kind == "pair" else 1
    known = list(option.choices) if option.choices and draw.random() < 0.5 else WORDS
    return [option.flag, *(draw.choice(known) for _ in range(count))]


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """A command with some of its options; sizes stay small, so that many lines are tried."""
    (folder / "x.json").write_text("{}")
    if draw.random() < 0.05:
        return [(draw.choice([*COMMANDS, "rum"]), draw.choice(WORDS))]
    command = draw.choice(TRIED)
    options = list(options_of(options_class(command)))
    words = [command]
    for option in draw.sample(options, draw.randint(0, 3)):
        if option.key not in KEPT:
            words += _words(draw, option)
    known = {option.key for option in options}
    for key, small in SMALL.items():
        if key in known and command != "config":
            words += [f"--{key}", small]
    if command in ("show", "compare"):
        words += draw.choices(["x.json", draw.choice(WORDS)], k=2 if command == "compare" else 1)
    return [words]


if __name__ == "__main__":
    sys.exit(main("cli", case))
