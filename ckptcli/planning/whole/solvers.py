"""The two solvers, imported where they are asked for, and what each may take.

Invariant: whatever is wrong with an installation ends in a `MissingLibraryError`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from ckptcli.errors import MissingLibraryError
from ckptcli.planning.planners.base import Deadline

LONGEST_S = 1e7
LOOKS_EVERY_S = 0.1

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Solvers:
    """The modules: `cp_model` of ortools, and highspy."""

    cp_model: Any
    highspy: Any


def load_solvers() -> Solvers:
    """Import both.

    Raises:
        MissingLibraryError: one is not installed, or cannot be imported.
    """
    return Solvers(_imported("ortools.sat.python.cp_model", "ortools"), _imported("highspy"))


def _imported(module: str, library: str = "") -> Any:
    library = library or module
    try:
        with silent_stdout():
            return importlib.import_module(module)
    except MemoryError:
        raise
    except Exception as error:  # a broken installation fails in its own ways
        missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
        absent = missing.split(".")[0] == library
        why = "is not installed" if absent else f"cannot be imported: {_said(error)}"
        raise MissingLibraryError(
            f"planner `cp-sat` needs {library}, which {why}", "pip install 'ckptcli[plan]'"
        ) from error


def _said(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0]


def seconds_of(deadline: Deadline) -> float:
    """What is left, as a number that solvers take."""
    return min(deadline.left_s, LONGEST_S)


def interruptible(solve: Callable[[], Result], stop: Callable[[], object]) -> Result | None:
    """What `solve` gives, waited for beside it so that Ctrl-C ends it; None if it failed."""
    results: list[Result] = []

    def run() -> None:
        with suppress(Exception):  # an oddity of the solver is no answer
            results.append(solve())

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(LOOKS_EVERY_S)
    except BaseException:
        stop()
        thread.join()
        raise
    return results[0] if results else None


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Keeps what a library prints out of the answer: HiGHS greets on the process's own stdout."""
    sys.stdout.flush()
    try:
        ours = os.dup(1)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
        os.close(nowhere)
