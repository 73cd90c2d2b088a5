"""What an engine of a sweep is."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from ckptcli.sweep.outcome import Outcome
from ckptcli.sweep.tasks import Task


@dataclass(frozen=True, slots=True)
class Request:
    """How points are to be measured.

    Attributes:
        memory_only: whether nothing is timed, so that points do not disturb each other.
        timeout_s: what a point may take; None for any time.
        scheduler: the address of a scheduler that runs; None for one of our own.
        folder: where the points are kept, if they are.
        parameters: what a cluster is asked for, by its own names.
    """

    memory_only: bool
    timeout_s: float | None = None
    scheduler: str | None = None
    folder: Path | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


Outcomes: TypeAlias = Generator[tuple[Task, Outcome], None, None]


class Engine(Protocol):
    """Hands points to what measures them."""

    def __init__(self, request: Request) -> None:
        """Raises:
        MissingLibraryError: the library that it needs is not installed.
        """

    def outcomes(self, tasks: Sequence[Task]) -> Outcomes:
        """What comes of each point, as it comes. Closing it ends what runs.

        Raises:
            CkptError: the engine itself failed; what it gave so far counts.
        """
