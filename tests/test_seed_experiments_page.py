"""The experiments that the project began with: each command on their page gives its figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backend_kit import skipped_without_its_engines

PAGE = (Path(__file__).parents[1] / "docs" / "seed-experiments.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ckpt ")
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.S)
    for line in block.splitlines()
]
FIGURES = {
    "log -s none --level full": ["1 node(s) to compute"],
    "log -s balanced --level full": ["{ value: 7 }: 2 node(s)", "{ value: 5 }: 3 node(s)"],
    "sines20 --level basic --sort": ["39 visits", "(today 39), 190 look-ups", "1,140 comparisons"],
    "sines40 --level basic --sort": ["79 visits", "(today 79), 780 look-ups", "9,880 comparisons"],
    "squares16 --level basic --sort": [
        "65,566 visits",
        "(today 47), 131,038 look-ups",
        "196,317 c",
    ],
    "recurrent.py:make --level basic --sort": ["about 10^15 visits", "(today 729), about 10^16"],
    "log -l 8 -n 64 --level basic --sort": ["61 visits", "(today 54), 29 look-ups", "14 comp"],
    "run -s none -s balanced --reps 9": [
        *("in_use =    36.0 MiB", "in_use =   128.0 MiB", "in_use =    68.0 MiB"),
        *("132.0 MiB", "80.0 MiB", "recomputes 7 mul, 8 sigmoid", "-89171.2"),
    ],
    "run --workload trg --steps 4..6,20 -s none -s remat": [
        *("0.84405407362385", "0.74479343324736", "0.71243200255133", "0.7044986795297"),
        *("steps=20 remat: effective", "gradients identical", "-3.9e-07"),
    ],
    "save_only_these_names(svd)' --reps 5": [
        *("60992168 B", "8393032 B", "42031048 B", "0.7044986795297"),
    ],
    "--jax-svd names-after --engine jax": [
        *("63109976 B", "8393496 B", "42031512 B", "0.7044986795297"),
    ],
    "-s 'remat:policy=save_only_these_names(svd)' --engine jax": ["63101272 B", "42031512 B"],
    "--engine jax-scan": ["jax-scan none", "63101272 B", "8393496 B"],
    "--steps 4 -s none -s remat --engine jax": ["0.84405407362385", "4888 B"],
    "-s remat:only=4 -s remat:only=3..4": ["632792 B", "549824 B", "0.7447934332473"],
    "remat:only=2..3 --jax-svd builtin": ["1.56284702810384", "40688 B", "11016 B"],
    "remat:only=2..3 --engine jax": ["1.56284702810384", "25536 B", "8680 B"],
    "--steps 4 -s none --jax-svd builtin": ["144664 B", "0.84405407362385"],
    "--steps 5 -s none -s remat --jax-svd builtin": ["7235648 B", "nan"],
    "--steps 4..6,20 -s remat --perturb-replay": ["moved by -1.5", "step 4", "column 5"],
    "sign:4,a,5+6+7+9+10+12": ["moved by -3.45e-04", "columns 5, 6, 7, 9, 10, 12"],
    "--op mul --merge copy": ["1,023", "262,143"],
    "--op trg --rounds 4 --merge copy": ["14,425", "15,679", "846", "0.84405407362385"],
    "--op mul --merge ptr-eq": ["18        18       18"],
    "--op trg --rounds 5 --merge ptr-eq": [
        "5         5        5",
        "15",
        "without checkpoints the same",
    ],
    "--op trg --rounds 5 --merge dedup": ["5         5        5", "without checkpoints the same"],
    "--op placeholder": ["placeholder User { id: 0 } has no runtime input binding"],
    "--beta 0.3,0.44,0.5 --rounds 4": [
        "0.84405407362385",
        "1.56284702810384",
        "18 programs",
        ", 0 later",
    ],
    "--beta 0.3,0.44,0.5 --rounds 20": [
        "0.7044986795",
        "1.40278527491",
        "1.7455834681500",
        "21 programs",
    ],
    "--op trg --rounds 20": ["0.7044986795", "8.0 MiB kept", "66.2 MiB kept"],
}
"""A part of a command -> what its output has."""


RIGHT = ("save_only_these_names(svd)' --engine jax",)
"""Parts of commands with JAX that are right on every machine; others end with 0 or 5."""


def exit_codes(command: str) -> set[int]:
    """What a command may end with."""
    if "--perturb-replay" in command or "--steps 5 -s none -s remat --jax-svd builtin" in command:
        return {5}
    if "--engine jax" in command and not any(part in command for part in RIGHT):
        return {0, 5}
    return {0}


@pytest.mark.slow
@pytest.mark.thinned(3)
@pytest.mark.parametrize("command", skipped_without_its_engines(COMMANDS))
def test_a_command_gives_the_figures_of_the_page(command: str) -> None:
    wide = " --width 160" if command.startswith("run") else ""  # every column of a table
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m ckptcli {command}{wide}'],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # decompositions stall on a busy machine
        timeout=300,
    )
    assert done.returncode in exit_codes(command)
    assert "Traceback" not in done.stderr
    for part, figures in FIGURES.items():
        if part in command:
            missing = [figure for figure in figures if figure not in done.stdout]
            assert missing == [], command


def test_every_figure_is_asked_for() -> None:
    assert [part for part in FIGURES if not any(part in command for command in COMMANDS)] == []
