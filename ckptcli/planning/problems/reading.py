"""Reads a problem from a JSON file: text in, a valid problem out, every fault one sentence.

A kind of problem is a file of this package that declares its reader; nothing else names it.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Sequence
from typing import Any

import ckptcli.planning.problems as package
from ckptcli.errors import ProblemFileError, nearest_name
from ckptcli.planning.problems.base import READERS, Problem
from ckptcli.planning.problems.fields import Fields, shown

STDIN = "-"


def read_problem_file(path: str) -> tuple[Problem, list[str]]:
    """The problem of a file, `-` for stdin, and warnings about entries that mean nothing.

    Raises:
        ProblemFileError: the file cannot be read, or is no problem.
    """
    return problem_of(path, _object(path, _text(path)))


def problem_of(place: str, values: Any) -> tuple[Problem, list[str]]:
    """The problem that a JSON object is, and warnings; `place` is what messages call it.

    Raises:
        ProblemFileError: it is no problem.
    """
    if not isinstance(values, dict):
        raise ProblemFileError(f"{place}: a problem is an object, got {shown(values)}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    kind = values.get("kind")
    known = sorted(READERS)
    if not isinstance(kind, str) or kind not in READERS:
        what = "has no `kind`" if kind is None else f"has the kind {shown(kind)}"
        nearest = nearest_name(kind, known) if isinstance(kind, str) else None
        hint = f"did you mean `{nearest}`?" if nearest else f"known: {', '.join(known)}"
        raise ProblemFileError(f"{place}: the problem {what}", hint)
    fields = Fields(place, values)
    problem = READERS[kind](fields)
    return problem, [f"{place}: `{key}` means nothing in a {kind}" for key in fields.unread()]


def _text(path: str) -> str:
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemFileError(
            f"{path}: not UTF-8 text: byte {error.start} is wrong", "save the file as UTF-8"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a path that cannot be one
        reason = getattr(error, "strerror", None) or str(error)
        raise ProblemFileError(f"cannot read problem file `{path}`: {reason}") from error


def _object(path: str, text: str) -> Any:
    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ProblemFileError(f"{path}: {shown(twice)} is given twice")
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError as error:
        raise ProblemFileError(f"{path}: the JSON is nested too deep") from error
    except json.JSONDecodeError as error:
        raise ProblemFileError(
            f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}"
        ) from error
    except ValueError as error:  # what is left: more digits than Python reads
        digits = re.search(r"\d{1000}", text)
        line = text.count("\n", 0, digits.start() if digits else 0) + 1
        raise ProblemFileError(f"{path}:{line}: a number has too many digits") from error
