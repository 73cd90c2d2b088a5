"""What the command line says of a workload: one field an option.

A workload that needs another one adds a line here, and names it among what it `uses`. A number that
may be a list is `int | str` or `float | str`: `ckptcli.options.points` takes the lists apart, and a
workload gets one number.
"""

from __future__ import annotations

from typing import Any

from ckptcli.backends.dtypes import DTYPES
from ckptcli.options.group import Options
from ckptcli.options.option import option
from ckptcli.options.subjects import EXPERIMENT, FUNCTION, MODULE, WORKLOAD


def _size(default: Any, help: str, **attributes: Any) -> Any:
    """An option of the silu network and of programs like it."""
    return option(default, help, by_workload=True, **attributes)


def _special(default: Any, help: str, **attributes: Any) -> Any:
    """An option of one workload among many."""
    return _size(default, help, section="Workloads trg and chain", **attributes)


class WorkloadOptions(Options):
    """The value of every option; each workload takes what concerns it."""

    layers: int | str = _size(
        8, "Layers of the silu network; several, 4,8 or 1..8.", short="l", at_least=1
    )
    n: int | str = _size(1024, "Width: weights are n x n.", short="n", at_least=1)
    batch: int | str | None = _size(None, "Rows of the input.", at_least=1, default_text="n")
    dtype: str | None = _size(
        None, "Element type.", choices=tuple(DTYPES), default_text="float32; trg float64"
    )
    seed: int = option(  # draws the order of rounds and directions too
        0,
        "Seed of the weights and the input.",
        at_least=0,
        subjects=frozenset({WORKLOAD, EXPERIMENT, MODULE, FUNCTION}),
    )
    steps: int | str = _special(20, "Steps of the trg.", at_least=1)
    chi: int | str = _special(
        16, "Singular values that a step of the trg keeps at most.", at_least=1
    )
    beta: float | str = _special(
        0.3, "Inverse temperature of the trg, also of the chain's.", at_least=0
    )
    svd_eps: float | str = _special(
        1e-12, "Broadening of the svd's gradient; 0 for none.", at_least=0
    )
    op: str = _special(
        "mul", "One round of the chain.", choices=("mul", "add", "trg", "placeholder")
    )
    rounds: int | None = _special(
        None, "Rounds of the chain.", at_least=1, default_text="18; trg 4; placeholder 1"
    )
    merge: str = _special(
        "shared",
        "How the chain's histories merge.",
        choices=("shared", "copy", "ptr-eq", "dedup", "left"),
    )
