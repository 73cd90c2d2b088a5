"""What the fuzzers of files and command lines share: the real command, and what it must never do.

A case follows from the seed and its number alone. Whatever a file or a line holds, the command ends
with one of its codes, in no traceback; what it prints has nothing that a terminal would act on; and
an error is short however long the value that it is about.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckptcli.cli.main import run_command
from ckptcli.visible import visible

CODES = (0, 1, 2, 3, 4, 5)
LONGEST_ERROR = 3000
"""Characters of stderr; a list of all names is the longest that an error says."""

COLOR = re.compile(r"\x1b\[[0-9;]*m")

EVIL = (
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[1;31mred",
    "\x9b31m",
    "\u202egnp.exe",
    "line\rover",
    "two\nlines",
    "\x00",
    "\ud800",
    "\u2028\ufeff\u200b",
    "=HYPERLINK(1)",
    "-1+1",
    "a" * 200_000,
    "\x1b" * 5000,
    "",
    "журнал",
)
NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2**31,
    2**62,
    2**63,
    10**30,
    10**400,
    -(10**400),
    0.0,
    -0.0,
    5e-324,
    1e-310,
    1.7e308,
    -1.7e308,
    float("inf"),
    float("nan"),
    1.5,
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"a": {"b": []}}, [1, "a", None])

Folder = Path
Case = Callable[[random.Random, Folder], Sequence[Sequence[str]]]
"""Writes the files of a case into a folder; gives the command lines to try on them."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended; `error` is the traceback, if it ended in one."""

    words: Sequence[str]
    code: object
    out: str
    err: str
    error: str | None


def value(draw: random.Random) -> Any:
    """Anything that JSON or TOML can hold, mostly of the worst."""
    return draw.choice(draw.choice([EVIL, NUMBERS, OTHERS]))


def ended(words: Sequence[str]) -> Outcome:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    error = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                code = run_command(words)
        except BaseException:
            error = traceback.format_exc()
    return Outcome(words, code, out.getvalue(), err.getvalue(), error)


def complaints(outcome: Outcome) -> Iterator[str]:
    """What is wrong with how a command ended."""
    if outcome.error is not None:
        yield f"ended in a traceback:\n{outcome.error[-1500:]}"
        return
    if outcome.code not in CODES:
        yield f"ended with {outcome.code!r}"
    if "Traceback" in outcome.err:
        yield "told a traceback"
    out = COLOR.sub("", outcome.out) if "always" in outcome.words else outcome.out
    for name, text in (("stdout", out), ("stderr", outcome.err)):
        if visible(text, keep="\n\t") != text:
            hidden = next(c for c in text if visible(c, keep="\n\t") != c)
            place = text.index(hidden)
            yield f"{name} has {hidden!r} after {text[max(0, place - 60) : place]!r}"
    if outcome.code and len(outcome.err) > LONGEST_ERROR:
        yield f"an error of {len(outcome.err)} characters: {outcome.err[:200]!r}"


def run(
    case: Case,
    seed: int,
    more: Callable[[int], bool],
    further: Callable[[Outcome], Iterable[str]] = lambda outcome: (),
) -> tuple[int, list[str]]:
    """Try case after case while `more` of the count says so; how many, and what was found.

    `further` is what a fuzzer itself holds against an outcome.
    """
    findings: list[str] = []
    count = 0
    before = os.getcwd()
    while more(count):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for words in case(random.Random(f"{seed}:{count}"), Path(folder)):
                    outcome = ended(words)
                    found = [*complaints(outcome), *further(outcome)]
                    findings += [f"case {count}: {' '.join(words)[:200]}: {text}" for text in found]
            finally:
                os.chdir(before)
        count += 1
    return count, findings


def main(
    name: str, case: Case, further: Callable[[Outcome], Iterable[str]] = lambda outcome: ()
) -> int:
    """The command line of a fuzzer."""
    parser = argparse.ArgumentParser(prog=f"scripts/fuzz {name}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="this many cases, instead of a time")
    parser.add_argument("--case", type=int, help="this case alone")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    if arguments.case is not None:
        one = arguments.case
        count, findings = run(
            lambda draw, folder: case(random.Random(f"{arguments.seed}:{one}"), folder),
            arguments.seed,
            lambda done: done < 1,
            further,
        )
    else:
        most = arguments.count
        count, findings = run(
            case,
            arguments.seed,
            lambda done: done < most if most is not None else time.monotonic() < end,
            further,
        )
    for finding in findings:
        print(finding)
    print(f"{count} cases, seed {arguments.seed}: {len(findings)} finding(s)")
    return 1 if findings else 0
