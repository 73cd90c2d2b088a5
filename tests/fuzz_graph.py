"""`scripts/fuzz graph`: graph files with arguments that no program has, and files that are none."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.workloads.graph_case import signature_of
from tests.fuzz_kit import main, value

COMMANDS = (
    ("log", "--level", "basic"),
    ("saved", "--json"),
    ("check",),
    ("log", "--explain", "-s", "remat"),
)
SHAPES = ([1], [3], [2, 2], [2, 3], [1, 2, 4], [2, 2, 3], [1, 1, 4, 4], [1, 2, 3, 3], [0], [2, 0])
INTEGERS = (-(2**63), -5, -2, -1, 0, 1, 2, 3, 4, 7, 1000, 10**9, 2**31, 2**62, 2**63 - 1)
NUMBERS = (-1.0, 0.0, 0.5, 1.0, 1e-300, 1e300, float("nan"), float("inf"))
WORDS = ("mean", "sum", "nearest", "bilinear", "bicubic", "none", "x")


def _integers(draw: random.Random) -> list[int]:
    return [draw.choice(INTEGERS) for _ in range(draw.randint(0, 4))]


def _argument(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.1:
        return value(draw)
    small = draw.random() < 0.6
    integer = draw.randint(-1, 3) if small else draw.choice(INTEGERS)
    if kind in ("int", "int | None"):
        return integer
    if kind == "bool":
        return draw.random() < 0.5
    if kind.startswith("float"):
        return draw.choice(NUMBERS)
    if kind == "str":
        return draw.choice(WORDS)
    if kind == "mask":
        return [draw.random() < 0.5 for _ in range(draw.randint(1, 4))]
    if "Sequence[Any]" in kind or "Sequence[Sequence" in kind:
        return [_integers(draw)[:2] for _ in range(draw.randint(1, 3))]
    if kind == "Sizes" and draw.random() < 0.5:
        return integer
    return [draw.randint(0, 3) for _ in range(draw.randint(1, 4))] if small else _integers(draw)


def _leaf(draw: random.Random) -> dict[str, Any]:
    shape = draw.choice(SHAPES)
    count = 1
    for size in shape:
        count *= size
    data = [draw.choice((0.0, 1.0, -2.0, 0.5, 1e300, float("nan"))) for _ in range(count)]
    return {"op": "leaf", "req": draw.random() < 0.8, "data": data, "shape": shape}


def _op(draw: random.Random, before: int) -> dict[str, Any]:
    name = draw.choice(list(OPERATIONS))
    signature = signature_of(name)
    count = draw.randint(1, 3) if signature.takes_list else len(signature.tensors)
    keys = {
        key: _argument(draw, kind)
        for key, kind in signature.arguments.items()
        if key not in signature.optional or draw.random() < 0.5
    }
    return {"op": name, "in": [draw.randrange(before) for _ in range(count)], **keys}


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """Leaves and an op or two of them, now and then with a value that is of no use there."""
    ops = [_leaf(draw) for _ in range(draw.randint(1, 3))]
    ops += [_op(draw, len(ops)) for _ in range(draw.randint(1, 2))]
    data: dict[str, Any] = {"ops": ops}
    if draw.random() < 0.1:
        draw.choice(ops)[draw.choice(("op", "in", "data", "shape", "req", "a"))] = value(draw)
    if draw.random() < 0.05:
        data[draw.choice(("root", "strategy", "ops"))] = value(draw)
    text = json.dumps(data)
    if draw.random() < 0.05:
        text = text[: draw.randrange(len(text))]
    (folder / "g.jsonl").write_text(text, encoding="utf-8")
    command, *more = draw.choice(COMMANDS)
    return [(command, "--workload", "graph:g.jsonl", *more)]


if __name__ == "__main__":
    sys.exit(main("graph", case))
