"""What it costs to start: commands against the imports that they cannot do without.

    scripts/bench start [ROUNDS]

Each command runs in a process of its own, all take turns within a round, and a ratio is that of
two medians: `ckpt --help` and `ckpt run --help` to `python -c 'import click'`, `ckpt log` of the
default network to `python -c 'import numpy, click'`. Beside them stands `ckpt run --help` to a
module that makes the same options with click alone and prints them: no such page takes less.
Compiled files are written, as for a user.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from ckptcli.cli.run import command as run_command

CLICK = ("-c", "import click")
NUMPY = ("-c", "import numpy, click")
HELP = ("-m", "ckptcli", "--help")
CLICK_HELP = ("-c", "import options_of_run")
RUN_HELP = ("-m", "ckptcli", "run", "--help")
LOG = ("-m", "ckptcli", "log")
COMMANDS = (CLICK, NUMPY, HELP, CLICK_HELP, RUN_HELP, LOG)

BOUNDS = (
    ("ckpt --help / import click", HELP, CLICK, 1.2),
    ("ckpt run --help / import click", RUN_HELP, CLICK, 1.2),
    ("ckpt run --help / the same by click", RUN_HELP, CLICK_HELP, 1.2),
    ("ckpt log / import numpy, click", LOG, NUMPY, 1.6),
)

MODULE = """
import click

@click.group()
def root(): pass

root.add_command(click.Command("run", help={help!r}, params=[{params}]))
root(["run", "--help"])
"""

SHOWN = ("help", "envvar", "is_flag", "multiple", "nargs", "metavar", "default", "show_default")
"""What a help text says of an option."""


def environment(folder: str) -> dict[str, str]:
    """A user's, with a folder on the path that has the module of click alone."""
    found = {name: of for name, of in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [folder, found.get("PYTHONPATH")]))
    return {**found, "PYTHONPATH": path}


def click_option(param: click.Parameter) -> str:
    """The text of an option with this help."""
    values = {name: getattr(param, name, None) for name in SHOWN}
    kept = {name: of for name, of in values.items() if isinstance(of, str | bool | int | float)}
    return f"click.Option({[*param.opts, param.name]!r}, **{kept!r})"


def seconds(arguments: Sequence[str], variables: dict[str, str]) -> float:
    """The processor's time, which other processes disturb less than the clock's."""
    before_s = spent_s()
    command = [sys.executable, *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=variables)
    return spent_s() - before_s


def spent_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def medians_of(rounds: int) -> dict[tuple[str, ...], float]:
    """Seconds of each command."""
    times: dict[tuple[str, ...], list[float]] = {command: [] for command in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        params = ", ".join(map(click_option, run_command.params))
        text = MODULE.format(help=run_command.help, params=params)
        (Path(folder) / "options_of_run.py").write_text(text, encoding="utf-8")
        for done in range(rounds + 1):
            for command in COMMANDS[:: 1 if done % 2 else -1]:
                time_s = seconds(command, environment(folder))
                if done:  # the first round reads files for the first time
                    times[command].append(time_s)
    return {command: statistics.median(found) for command, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=21)
    rounds = parser.parse_args().rounds
    medians = medians_of(rounds)
    for command, median in medians.items():
        print(f"  python {' '.join(command):<28} {median * 1e3:6.1f} ms")
    print(f"start: {rounds} rounds")
    for text, command, base, bound in BOUNDS:
        ratio = medians[command] / medians[base]
        verdict = "ok" if ratio <= bound else "ABOVE"
        print(f"  {text:<36} {ratio:6.2f}  (bound {bound}) {verdict}")


if __name__ == "__main__":
    main()
