"""What `ckpt run` takes as a whole on a terminal, and which of it is rounds.

    scripts/bench whole [ROUNDS] [OPTIONS OF ckpt run ...]

The command runs on a pseudo-terminal, by default with `--layers 8 --n 1024 --reps 9`, in turns with
a script that opens the same passes in the library and runs them as often as the rounds did and no
more. A phase lasts from its first line of progress to that of the next; figures are medians,
seconds of the clock.
"""

from __future__ import annotations

import os
import pty
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

OPTIONS = ("--layers", "8", "--n", "1024", "--reps", "9")

PASSES = """
import sys
from ckptcli.backends.allocator import reuse_freed_memory
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.autodiff.device import device
from ckptcli.passes.run import open_pass
from ckptcli.workloads.silu import SiluWorkload
reuse_freed_memory()
workload, backend = SiluWorkload(int(sys.argv[1]), int(sys.argv[2])), device("numpy").backend
opened = [open_pass(workload, parse_strategy(name), backend) for name in ("none", "balanced")]
for _ in range(int(sys.argv[3])):
    for one in opened:
        one.backward(one.forward())
"""

PHASES = {
    "memory": "memory passes",
    "difference": "other checks",
    "process memory": "memory of the process",
    "timing": "rounds, with warm-up",
}
"""What a line of progress begins with, and what the phase is called here."""


def lines_of(command: Sequence[str]) -> Iterator[tuple[float, str]]:
    """Each line that the command writes to a terminal, and the seconds since the start."""
    start_s = time.perf_counter()
    process, terminal = pty.fork()
    if not process:
        os.execvp(command[0], command)
    while True:
        try:
            written = os.read(terminal, 1 << 16)
        except OSError:  # how a terminal ends
            break
        now_s = time.perf_counter() - start_s
        for line in re.split(r"[\r\n]+", written.decode("utf-8", "replace")):
            shown = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line)
            if shown.strip():
                yield now_s, shown
    os.close(terminal)
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        sys.exit(f"{' '.join(command)} failed")
    yield time.perf_counter() - start_s, "end"


def phases_of(options: Sequence[str]) -> dict[str, float]:
    """Seconds to the first line, to the first figure, of each phase, and of the whole."""
    found: dict[str, float] = {}
    phase, since_s = "start", 0.0
    for now_s, line in lines_of([sys.executable, "-m", "ckptcli", "run", *options]):
        name = line.partition(" [")[0]
        next_phase = PHASES.get(name) if " [" in line else None
        if " [" not in line and phase == PHASES["timing"]:
            next_phase = "screen and end"
        if line.startswith("params + input"):
            found.setdefault("to the first figure", now_s)
        if next_phase not in (None, phase) or line == "end":
            found[phase] = found.get(phase, 0.0) + now_s - since_s
            phase, since_s = next_phase or phase, now_s
    return {**found, "whole": now_s}


def passes_s(rounds: int) -> float:
    """The script of the passes alone, as a process."""
    start_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", PASSES, "8", "1024", str(rounds)], check=True)
    return time.perf_counter() - start_s


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    options = tuple(sys.argv[2:]) or OPTIONS
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, time_s in phases_of(options).items():
            found.setdefault(name, []).append(time_s)
        if options == OPTIONS:
            found.setdefault("a script of the same passes", []).append(passes_s(1 + 9))
    print(f"ckpt run {' '.join(options)}: {rounds} times")
    for name, times_s in found.items():
        print(f"  {name:<28} {statistics.median(times_s):6.2f} s")


if __name__ == "__main__":
    main()
