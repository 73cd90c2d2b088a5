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
_MACHINERY = tuple(
    f"{_SITE}torch/{part}"
    for part in ("_ops", "_tensor.py", "_compile.py", "_dynamo/", "utils/_python_disp")
)
_CALLER = str(Path(__file__).with_name("torch_module.py"))
"""Where ckpt calls the module; what called ckpt is none of the module's lines."""


def lines_here() -> tuple[str, str]:
    """`FILE:LINE` of the user's innermost line, and of the innermost line of any library that is
    not PyTorch's dispatch; "" for one that is not there.
    """
    frame = sys._getframe(1)
    innermost = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _CALLER:
            break
        if _is_users(file):
            line = f"{file}:{frame.f_lineno}"
            return line, innermost or line
        if not innermost and not file.startswith((_CKPT, "<", *_MACHINERY)):
            innermost = f"{file.removeprefix(_SITE)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "", innermost


@cache
def _is_users(file: str) -> bool:
    return is_users_file(file)
