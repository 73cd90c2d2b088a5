"""`scripts/fuzz arguments`: integers that no program has, in every op of a graph file that has any.

A case is a valid call with one to three of its integers changed. It ends in a result, or in an
error that names file, line and op; what is too large is refused with the bytes that it needs,
before any of it is done. The process may have little more memory than it starts with, and a case
that goes on ends it.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.argument_calls import CALLS, changed, places
from tests.fuzz_kit import Outcome, main

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

VALUES = (2**31, 2**62, 2**63 - 1, 10**9, 0, -1, -(2**63))
COMMANDS = (("log",), ("saved", "--json"), ("check",), ("log", "--no-memory-check"))
MEMORY_BYTES = 2**29
SECONDS = 10.0
"""Of processor time, for a case that takes milliseconds."""


def graph(shapes: Sequence[Sequence[int]], call: dict[str, Any]) -> str:
    """The file of a call, each operand a leaf of these elements."""
    ops: list[dict[str, Any]] = []
    for shape in shapes:
        count = 1
        for size in shape:
            count *= size
        data = [0.5 + index % 3 for index in range(count)]
        ops.append({"op": "leaf", "req": True, "data": data, "shape": shape})
    return json.dumps({"ops": [*ops, {**call, "in": list(range(len(shapes)))}]})


def limited() -> None:
    """Leave this process `MEMORY_BYTES` more than it has, where the system can."""
    if resource is not None and Path("/proc/self/statm").exists():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES,) * 2)


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """Any call, any of its integers, any command that runs it."""
    shapes, call = draw.choice(CALLS)
    within = places(call)
    for place in draw.sample(within, min(len(within), draw.choice((1, 1, 2, 3)))):
        call = changed(call, place, draw.choice(VALUES))
    (folder / "g.jsonl").write_text(graph(shapes, call), encoding="utf-8")
    if resource is not None:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # kills
    command, *more = draw.choice(COMMANDS)
    return [(command, "--workload", "graph:g.jsonl", *more)]


def complaints(outcome: Outcome) -> Iterator[str]:
    """What is wrong with an error: no place, or found only while the work was done."""
    if outcome.code in (1, 2):
        if "g.jsonl:1: op " not in outcome.err and "g.jsonl:1: root " not in outcome.err:
            yield f"names no place: {outcome.err[:300]}"
        if "does not fit in memory" in outcome.err:
            yield f"was refused late: {outcome.err[:300]}"


if __name__ == "__main__":
    limited()
    sys.exit(main("arguments", case, complaints))
