"""`--function FILE.py:MAKE`: a JAX function of the user's own, in the commands that take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcli.errors import UsageError
from ckptcli.options.effects import Subject, without_effect
from ckptcli.options.subjects import FUNCTION

if TYPE_CHECKING:
    from ckptcli.cli.line import Line

ENGINE = "jax"
ENGINES = (ENGINE, "jax-eager")
SUBJECT = Subject(FUNCTION, "a function")


def checked_function(
    text: str, names: Sequence[str], module: str | None, line: Line
) -> tuple[Sequence[str], list[str]]:
    """The engines that are meant, JAX where none is named, and warnings about options.

    Raises:
        UsageError: another engine than JAX's, a module beside it, or an option that a function
            cannot have.
    """
    if module is not None:
        raise UsageError(
            f"--function {text} and --module {module} are two programs", "leave out one"
        )
    engines = tuple(dict.fromkeys(names)) or (ENGINE,)
    wrong = [name for name in engines if name not in ENGINES]
    if wrong:
        raise UsageError(
            f"--function {text} is JAX's, and --engine {wrong[0]} is not",
            f"leave out --engine, or use {' or '.join(ENGINES)}",
        )
    return engines, without_effect(line.options, line.given, SUBJECT)
