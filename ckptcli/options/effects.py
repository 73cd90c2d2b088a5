"""What an option means for what a command is about.

Invariant: an option that was given and does nothing is told: by a warning, or by a refusal where
its loss would not be noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ckptcli.errors import UsageError
from ckptcli.options.option import Option


@dataclass(frozen=True, slots=True)
class Subject:
    """What a command line is about.

    Attributes:
        kind: one of `SUBJECTS`.
        title: how a message calls it, "workload `silu`".
        uses: the options by workload that it looks at, by their names.
        engines: the engines that run it beside ckpt's own, by name.
    """

    kind: str
    title: str
    uses: frozenset[str] = frozenset()
    engines: frozenset[str] = frozenset()


def takes(subject: Subject, option: Option) -> bool:
    """Whether the option has an effect on the subject."""
    if subject.kind not in option.subjects or not _is_reached(subject, option):
        return False
    return option.name in subject.uses if option.by_workload else True


def _is_reached(subject: Subject, option: Option) -> bool:
    """Whether an engine of the library runs that alone looks at the option: `jax`, `jax-scan`."""
    libraries = {engine.partition("-")[0] for engine in subject.engines}
    return not option.library or option.library in libraries


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
    return [_sentence(option, subject) for option in lost]


def _sentence(option: Option, subject: Subject) -> str:
    """With the engine that it lacks, if that is all."""
    text = f"{option.flag} has no effect on {subject.title}"
    if option.library and takes(replace(subject, engines=frozenset({option.library})), option):
        return f"{text} without --engine {option.library}"
    return text
