"""`scripts/fuzz plan`: planning problems with entries that no program writes."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz_kit import main, value
from tests.fuzz_record import places
from tests.planning_kit import recorded

MOST_CHANGES = 3
BUDGETS = ("0", "5", "1e3", "64KiB", "1000000000000000000000000", "-1", "", "x", "1e400")
PLANNERS = (
    *("auto", "everything", "exact", "greedy", "dtr", "min-cut", "chen", "chen-longer-first"),
    *("chain-revolve", "chain-dp", "exact-chain", "revolve", "mixed", "hrevolve", "knapsack"),
)


@cache
def _whole() -> list[dict[str, Any]]:
    """A problem of each kind."""
    found: list[dict[str, Any]] = [
        {"kind": "steps", "n": 12},
        {"kind": "knapsack", "memory": [5, 4, 4], "runtime": [10, 7, 7]},
    ]
    for name, kind in (("plan_dags", "dag"), ("plan_chains", "chain")):
        for values in recorded(name).values():
            named = {key: item for key, item in values.items() if not key.startswith("table")}
            found.append({"kind": kind, **named})
    return found


def changed(draw: random.Random, container: Any, key: Any) -> None:
    """One entry gone, twice, or another."""
    what = draw.random()
    if what < 0.15:
        del container[key]
    elif what < 0.3 and isinstance(container, list):
        container.append(container[key])
    elif what < 0.7:
        container[key] = draw.choice((0, 1, 2, 7, 2**70, 1e-3, 3.0, 10**90))
    else:
        container[key] = value(draw)


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """A problem with some of its entries changed; any planner, any budget."""
    data = copy.deepcopy(draw.choice(_whole()))
    entries = list(places(data))
    draw.shuffle(entries)
    for container, key in entries[: draw.choice((0, 1, 1, MOST_CHANGES))]:
        if isinstance(container, dict) or key < len(container):
            changed(draw, container, key)
    (folder / "p.json").write_text(json.dumps(data), encoding="utf-8")
    planner = "auto" if draw.random() < 0.6 else draw.choice(PLANNERS)
    words = ["plan", "-q", "--graph", "p.json", "--planner", planner]
    lines = []
    for _ in range(2):
        slots = ["--slots", str(draw.choice((1, 2, 5, 10**9)))] if draw.random() < 0.7 else []
        disk = ["--disk", str(draw.randint(0, 3))] if draw.random() < 0.3 else []
        budget = [f"--budget={draw.choice(BUDGETS)}"] if draw.random() < 0.8 else []
        form = ["--json"] if draw.random() < 0.5 else []
        lines.append([*words, *slots, *disk, *budget, *form])
    return lines


if __name__ == "__main__":
    sys.exit(main("plan", case))
