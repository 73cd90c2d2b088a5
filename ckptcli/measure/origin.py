"""Where a record comes from: when, on which host, at which commit, by which command line.

Each fact is collected on its own; what cannot be had is None.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

from ckptcli.measure.fields import Pattern

GIT_TIMEOUT_S = 2.0
"""A repository on a slow disk must not hold up a run."""

Moment = Annotated[str, Pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


@dataclass(frozen=True, slots=True)
class Origin:
    """When, where and from what a run was made. Null is not known.

    Attributes:
        began: When the run began, UTC.
        host: Name of the machine in its network.
        commit: Commit of the repository that the run was started in.
        is_clean: Whether its tracked files were those of the commit.
        command: The command line, word by word; empty for a run from Python.
        load_average: Processes that ran or wanted to when the run began, mean of the last minute.
    """

    began: Moment
    host: str | None
    commit: str | None
    is_clean: bool | None
    command: Sequence[str] = ()
    load_average: float | None = None


def read_origin(command: Sequence[str] = ()) -> Origin:
    """The origin of a run that begins now, in the working directory."""
    began = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    commit = _git("rev-parse", "--verify", "--quiet", "HEAD") if _in_a_repository() else None
    changes = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return Origin(
        began=began,
        host=platform.node() or None,
        commit=commit or None,
        is_clean=None if changes is None else not changes,
        command=tuple(command),
        load_average=_load_average(),
    )


def _load_average() -> float | None:
    with suppress(AttributeError, OSError):  # a system without it, or that does not tell
        return os.getloadavg()[0]
    return None


def _in_a_repository() -> bool:
    """Whether it is worth a process to ask."""
    here = Path.cwd()
    return any((folder / ".git").exists() for folder in (here, *here.parents))


NO_CODE = ("-c", "core.fsmonitor=false")
"""A repository may name a program that `git status` runs."""


def _git(*arguments: str) -> str | None:
    """What git prints; None where there is no git, no repository, or no answer in time."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *NO_CODE, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
