"""What it costs to start: commands against the imports that they cannot do without.

    scripts/bench start [ROUNDS]

Each command runs in a process of its own, all take turns within a round, and a ratio is that of
two medians: `ckpt --help` and `ckpt run --help` to `python -c 'import click'`, `ckpt log` of the
default network to `python -c 'import numpy, click'`. Compiled files are written, as for a user.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

CLICK = ("-c", "import click")
NUMPY = ("-c", "import numpy, click")
HELP = ("-m", "ckptcli", "--help")
RUN_HELP = ("-m", "ckptcli", "run", "--help")
LOG = ("-m", "ckptcli", "log")

BOUNDS = (
    ("ckpt --help / import click", HELP, CLICK, 1.2),
    ("ckpt run --help / import click", RUN_HELP, CLICK, 1.2),
    ("ckpt log / import numpy, click", LOG, NUMPY, 1.6),
)


ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def seconds(arguments: tuple[str, ...]) -> float:
    """The processor's time, which other processes disturb less than the clock's."""
    before_s = spent_s()
    command = [sys.executable, *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=ENVIRONMENT)
    return spent_s() - before_s


def spent_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=21)
    rounds = parser.parse_args().rounds
    commands = (CLICK, NUMPY, HELP, RUN_HELP, LOG)
    times: dict[tuple[str, ...], list[float]] = {command: [] for command in commands}
    for done in range(rounds + 1):
        for command in commands[:: 1 if done % 2 else -1]:
            time_s = seconds(command)
            if done:  # the first round reads files for the first time
                times[command].append(time_s)
    medians = {command: statistics.median(found) for command, found in times.items()}
    for command, median in medians.items():
        print(f"  python {' '.join(command):<28} {median * 1e3:6.1f} ms")
    print(f"start: {rounds} rounds")
    for text, command, base, bound in BOUNDS:
        ratio = medians[command] / medians[base]
        verdict = "ok" if ratio <= bound else "ABOVE"
        print(f"  {text:<34} {ratio:6.2f}  (bound {bound}) {verdict}")


if __name__ == "__main__":
    main()
