"""Options that say how long and against what is measured."""

from __future__ import annotations

from ckptcli.options.group import Options
from ckptcli.options.option import option
from ckptcli.options.refusals import Refusal
from ckptcli.options.subjects import EXPERIMENT, FUNCTION, MODULE, WORKLOAD

MOST_SECONDS = 1e8
"""Three years; a timer does not take much more."""

_TIMED = frozenset({WORKLOAD, MODULE, FUNCTION})


THRESHOLD = 0.02
"""Times of two that differ by no more than this share are the same, where nobody says otherwise."""


class ThresholdOptions(Options):
    """Which times count as the same."""

    threshold_percent: float = option(
        100.0 * THRESHOLD,
        "Times within this of the reference's are `same`.",
        section="How to measure",
        key="threshold",
        metavar="PERCENT",
        at_least=0,
        at_most=50,
        subjects=_TIMED,
    )


class MachinesOptions(Options):
    """Whether times of several machines are compared."""

    allow_different_machines: bool = option(
        False,
        "Give time verdicts even if the machine records differ.",
        section="How to measure",
    )


class DeviceMemoryOptions(Options):
    """The memory of a device that may not be at hand."""

    device_memory: str | None = option(
        None,
        "A strategy whose peak is above this does not fit: it is left out, exit code 1.",
        section="How to measure",
        metavar="SIZE",
        subjects=frozenset({WORKLOAD, MODULE}),
    )


class RoundOptions(Options):
    """How many rounds, in how many processes."""

    reps: int | None = option(
        None,
        "Timed rounds; each runs every strategy once.",
        section="How to measure",
        metavar="R",
        at_least=1,
        default_text="until the intervals are narrow",
        subjects=_TIMED,
    )
    max_time_s: float = option(
        10.0,
        "Without --reps: begin no round after this, but make at least 9 in each process.",
        section="How to measure",
        key="max-time",
        metavar="SECONDS",
        above=0,
        at_most=MOST_SECONDS,
        subjects=_TIMED,
        not_reproduced="the number of rounds is named",
    )
    warmup: int = option(
        1,
        "Rounds before them: shown, never in a median.",
        section="How to measure",
        at_least=0,
        subjects=_TIMED,
    )
    memory_only: bool = option(
        False,
        "Memory alone: the exact account of one pass, and no times.",
        section="How to measure",
        subjects=_TIMED,
        refuses=(Refusal(("reps", "processes")),),
    )
    processes: int = option(
        1,
        "Spread the rounds over P fresh processes; makes records comparable.",
        section="How to measure",
        metavar="P",
        at_least=1,
        subjects=_TIMED,
        not_in_child="a child process is one of them",
    )
    no_reference: bool = option(
        False,
        "Do not run `none` to compare with; the first of several strategies is the reference.",
        section="How to measure",
        subjects=frozenset({WORKLOAD}),
    )
    timeout_s: float | None = option(
        None,
        "Stop after this and exit with 124; complete rounds are reported.",
        section="How to measure",
        key="timeout",
        metavar="SECONDS",
        above=0,
        at_most=MOST_SECONDS,
        subjects=frozenset({WORKLOAD, EXPERIMENT, MODULE, FUNCTION}),
        not_in_child="the parent's clock runs, and ends its children",
        not_reproduced="it changes no figure",
    )
