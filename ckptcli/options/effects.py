"""What an option means for what a command is about.

Invariant: an option that was given and does nothing is told: by a warning, or by a refusal where
its loss would not be noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ckptcli.errors import UsageError
from ckptcli.options.option import Option


@dataclass(frozen=True, slots=True)
class Subject:
    """What a command line is about.

    Attributes:
        kind: one of `SUBJECTS`.
        title: how a message calls it, "workload `silu`".
        uses: the options by workload that it looks at, by their names.
    """

    kind: str
    title: str
    uses: frozenset[str] = frozenset()


def takes(subject: Subject, option: Option) -> bool:
    """Whether the option has an effect on the subject."""
    if subject.kind not in option.subjects:
        return False
    return option.name in subject.uses if option.by_workload else True


def without_effect(
    options: Sequence[Option], given: Collection[str], subject: Subject
) -> list[str]:
    """A warning for each option in `given`, by name, that the subject does not take.

    Raises:
        UsageError: one whose loss would not be noticed.
    """
    lost = [option for option in options if option.name in given and not takes(subject, option)]
    for option in lost:
        if subject.kind in option.refused_by:
            raise UsageError(
                f"{option.flag} does not take {subject.title}",
                "use --json for the result as data",
            )
    return [f"{option.flag} has no effect on {subject.title}" for option in lost]
