"""Which line of the program makes a value, `FILE:LINE`.

It is asked for once an op of a watched pass, so that nothing is worked out twice: whether a file is
the engine's, how its path is written, and the text of a line.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

_ENGINE = "ckptcli.autodiff"
_PACKAGE = "ckptcli."
_ROOT = Path(__file__).parents[2]


def program_line() -> str:
    """The innermost line outside the engine that is being run; a file of ours from its root."""
    frame = sys._getframe(1)
    path = _path(frame.f_code.co_filename, frame.f_globals.get("__name__", ""))
    while path is None and frame.f_back is not None:
        frame = frame.f_back
        path = _path(frame.f_code.co_filename, frame.f_globals.get("__name__", ""))
    return _text(path or frame.f_code.co_filename, frame.f_lineno)


@cache
def _path(file: str, module: str) -> str | None:
    """How a file is written; None for one of the engine."""
    if module.startswith(_ENGINE):
        return None
    return str(Path(file).relative_to(_ROOT) if module.startswith(_PACKAGE) else Path(file))


@cache
def _text(path: str, line: int) -> str:
    return f"{path}:{line}"
