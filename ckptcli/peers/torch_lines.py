"""Which line an op of a PyTorch module comes from: the user's own, and the library's that calls it.

Invariant: frames above ckpt's own call of the module are not looked at.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import torch

from ckptcli.checkpoint.user_code import is_users_file

_CKPT = str(Path(__file__).parents[1])
_SITE = f"{Path(torch.__file__).parents[1]}/"
_TORCH = f"{_SITE}torch/"
_MACHINERY = tuple(
    f"{_TORCH}{part}"
    for part in ("_ops", "_tensor.py", "_compile.py", "_dynamo/", "utils/_python_disp")
)
_CALLER = str(Path(__file__).with_name("torch_module.py"))
"""Where ckpt calls the module; what called ckpt is none of the module's lines."""


def lines_here() -> tuple[str, str]:
    """`FILE:LINE` of the user's innermost line, or of a library's beside PyTorch where no line of
    the user's led to it; and of the innermost line but PyTorch's dispatch; "" for one that is not
    there.
    """
    frame = sys._getframe(1)
    innermost = library = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _CALLER:
            break
        if _is_users(file):
            line = f"{file}:{frame.f_lineno}"
            return line, innermost or line
        if not innermost and not file.startswith("<") and not is_between(file):
            innermost = f"{file.removeprefix(_SITE)}:{frame.f_lineno}"
        if not library and file.startswith(_SITE) and not file.startswith(_TORCH):
            library = f"{file.removeprefix(_SITE)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return library, innermost


@cache
def is_between(file: str) -> bool:
    """Whether a frame of this file is ckpt's own or PyTorch's dispatch to it, and calls no op."""
    return file.startswith((_CKPT, *_MACHINERY))


@cache
def _is_users(file: str) -> bool:
    return is_users_file(file)
