"""Files of the user's own, as `FILE.py:NAME`: loading them, and blaming the line that failed.

A file is run as a module of its own. Its folder joins the end of the path, so that what lies beside
it can be imported and nothing of it stands in front of another module.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType

from ckptcli.errors import (
    CkptError,
    OutOfMemoryError,
    OutputError,
    ProgramError,
    UnknownNameError,
    UsageError,
)

SUFFIX = ".py"
MARK = ".py:"
_IMPORTABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


_ENDS = (
    'put what parses arguments or trains under `if __name__ == "__main__":`, which is left out '
    "here, or give each argument a default"
)


@cache
def _not_the_users() -> tuple[str, ...]:
    """What the names of files begin with that are not the user's."""
    import sysconfig

    return (
        "<",  # no file at all, `<frozen importlib>`
        str(Path(__file__).parents[1]) + os.sep,
        *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")),
    )


def is_users_file(file: str) -> bool:
    """Whether a file belongs to no library, and not to ckpt."""
    return not file.startswith(_not_the_users())


def is_user_code(text: str) -> bool:
    """Whether `text` has the form `FILE.py:NAME`."""
    return MARK in text


def load_name(
    text: str, source: str | None = None, names: Mapping[str, object] | None = None
) -> object:
    """What `NAME` stands for in `FILE.py`, which is run to find out.

    Args:
        text: `FILE.py:NAME`.
        source: what is run in the file's place.
        names: what its names stand for before it is run.

    Raises:
        UsageError: the file cannot be run.
        UnknownNameError: it has no such name.
    """
    stem, _, name = text.partition(MARK)
    path = Path(f"{stem}{SUFFIX}")
    return _named(_run(path, source, names or {}), name, f"name in `{path}`:")


def is_importable(text: str) -> bool:
    """Whether `text` has the form `PACKAGE.MODULE:NAME`."""
    return _IMPORTABLE.fullmatch(text) is not None


def import_name(text: str) -> object:
    """What `NAME` stands for in `PACKAGE.MODULE`, which is imported.

    Raises:
        UsageError: it cannot be imported.
        UnknownNameError: it has no such name.
    """
    import importlib

    path, _, name = text.partition(":")
    try:
        with _as_a_script(path):
            module = importlib.import_module(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever an import raises
        raise UsageError(
            f"`{path}` cannot be imported{_at(error)}: {_reason(error)}",
            "install its package, or name a file of your own, FILE.py:MAKE",
        ) from error
    return _named(module, name, f"name in `{path}`:")


def _named(module: ModuleType, name: str, kind: str) -> object:
    if not hasattr(module, name):
        known = [
            known
            for known, value in vars(module).items()
            if not known.startswith("_") and not isinstance(value, ModuleType)
        ]
        raise UnknownNameError(kind, name, known)
    value: object = getattr(module, name)
    return value


@contextmanager
def _as_a_script(what: str) -> Iterator[None]:
    """Inside, what is printed goes to stderr, and `sys.argv` is as `python FILE.py` has it: a file
    that parses its arguments finds its defaults, not the words of ckpt.
    """
    given = sys.argv
    stem, mark, _ = what.partition(MARK)
    sys.argv = [f"{stem}{SUFFIX}" if mark else what]
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.argv = given


@contextmanager
def running(what: str, hint: str, where: Callable[[], str] = str) -> Iterator[None]:
    """Inside, the user's code runs as a script: what it prints goes to stderr, an error names its
    line.

    Args:
        what: what the error names first.
        hint: what to do where memory does not suffice.
        where: after an error, what of it ran, as ` in PART`; "" if that is not known.

    Raises:
        ProgramError: the code raised something.
        OutputError: as it was raised inside.
        OutOfMemoryError: it does not fit in memory.
    """
    try:
        with _as_a_script(what):
            yield
    except (KeyboardInterrupt, OutOfMemoryError, OutputError):
        raise
    except MemoryError as error:
        message = f"`{what}` does not fit in memory{_at(error)}{where()}: {_reason(error)}"
        raise OutOfMemoryError(message, hint) from error
    except BaseException as error:  # whatever the user's code raises
        advice = error.hint if isinstance(error, CkptError) else None
        message = f"`{what}` failed{_at(error)}{where()}: {_reason(error)}"
        raise ProgramError(message, advice) from error


def refused_arguments(
    function: Callable[..., object], *arguments: object, **keywords: object
) -> str | None:
    """Why a function cannot be called with these arguments; None where it can, or does not tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # not callable, or written in C
        return None
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        return str(error)
    return None


def _run(path: Path, source: str | None, names: Mapping[str, object]) -> ModuleType:
    """The module in a file; the code has the path as given, so that lines are named by it."""
    module = ModuleType(f"_user_{path.stem}")
    vars(module).update(names)
    module.__file__ = str(path.absolute())
    folder = str(path.absolute().parent)
    text = _read(path) if source is None else source
    try:
        code = compile(text, str(path), "exec")
        if folder not in sys.path:
            sys.path.append(folder)
        sys.modules[module.__name__] = module  # a dataclass looks its module up
        with _as_a_script(str(path)):
            exec(code, module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a file of the user's raises
        message = f"`{path}` cannot be loaded{_at(error)}: {_reason(error)}"
        raise UsageError(message, _ENDS if isinstance(error, SystemExit) else None) from error
    return module


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that the system cannot have
        why = getattr(error, "strerror", None) or str(error)
        message = f"`{path}` cannot be read: {why}"
        raise UsageError(message, "name a file of yours that there is, FILE.py:MAKE") from error


def _at(error: BaseException) -> str:
    """` at FILE:LINE (SOURCE)` of the innermost line that is the user's; "" if there is none."""
    place: tuple[str, int] | None = None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = (error.filename, error.lineno)
    else:
        traceback = error.__traceback__
        while traceback is not None:
            file = traceback.tb_frame.f_code.co_filename
            if is_users_file(file):
                place = (file, traceback.tb_lineno)
            traceback = traceback.tb_next
    if place is None:
        return ""
    linecache.checkcache(place[0])
    source = linecache.getline(*place).strip()
    return f" at {place[0]}:{place[1]}" + (f" (`{source}`)" if source else "")


def _text_of(error: BaseException) -> str:
    """What the error says of itself; nothing where the user's own `__str__` fails."""
    try:
        return str(error)
    except Exception:
        return ""


def _reason(error: BaseException) -> str:
    """One line: an error of the engine's in its own words, any other with its type in front."""
    if isinstance(error, CkptError):
        return error.message
    text = error.msg if isinstance(error, SyntaxError) else _text_of(error)
    first = (text.strip().splitlines() or [""])[0]
    kind = type(error).__name__
    return f"{kind}: {first}" if first else kind
