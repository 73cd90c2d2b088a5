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
class Kind:
    """What a command line is about, as far as options go by it.

    Attributes:
        name: one of `SUBJECTS`.
        title: how a message calls it, "workload `silu`".
        uses: the options by workload that it looks at, by their names.
        engines: the engines that run it beside ckpt's own, by name.
    """

    name: str
    title: str
    uses: frozenset[str] = frozenset()
    engines: frozenset[str] = frozenset()


def takes(kind: Kind, option: Option) -> bool:
    """Whether the option has an effect on the kind."""
    if kind.name not in option.subjects or not _is_reached(kind, option):
        return False
    return option.name in kind.uses if option.by_workload else True


def _is_reached(kind: Kind, option: Option) -> bool:
    """Whether an engine of the library runs that alone looks at the option: `jax`, `jax-scan`."""
    libraries = {engine.partition("-")[0] for engine in kind.engines}
    return not option.library or option.library in libraries


def without_effect(options: Sequence[Option], given: Collection[str], kind: Kind) -> list[str]:
    """A warning for each option in `given`, by name, that the subject does not take.

    Raises:
        UsageError: one whose loss would not be noticed.
    """
    lost = [option for option in options if option.name in given and not takes(kind, option)]
    for option in lost:
        if kind.name in option.refused_by:
            raise UsageError(
                f"{option.flag} does not take {kind.title}",
                "use --json for the result as data",
            )
    return [_sentence(option, kind) for option in lost]


def _sentence(option: Option, kind: Kind) -> str:
    """With the engine that it lacks, if that is all."""
    text = f"{option.flag} has no effect on {kind.title}"
    if option.library and takes(replace(kind, engines=frozenset({option.library})), option):
        return f"{text} without --engine {option.library}"
    return text
