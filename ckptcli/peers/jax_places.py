"""Where an equation of a JAX program comes from: the line that JAX names, and the user's own.

JAX names the innermost line outside itself, which is a library's where one is used; the user's line
is the innermost of a file that is in no library.

Source: `jax.extend.source_info_util.summarize`, by which JAX itself names the line of a residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ckptcli.checkpoint.user_code import is_users_file


@dataclass(frozen=True, slots=True)
class Line:
    """`FILE:LINE` and the function that it stands in."""

    place: str
    function: str


def source_of(equation: Any) -> str:
    """`FILE:LINE:COLUMN (FUNCTION)` as JAX names it; "an unknown line" where it does not."""
    try:
        from jax.extend import source_info_util

        return str(source_info_util.summarize(equation.source_info))
    except (ImportError, AttributeError):
        return "an unknown line"


def user_line(equation: Any) -> Line | None:
    """The innermost line of the user's own; None where there is none."""
    for file, number, function in _frames(equation):
        if is_users_file(file):
            return Line(f"{file}:{number}", function)
    return None


def user_functions(equation: Any) -> list[tuple[str, str]]:
    """File and function of every line of the user's that led to the equation, innermost first."""
    return [(file, name) for file, _, name in _frames(equation) if is_users_file(file)]


def _frames(equation: Any) -> list[tuple[str, int, str]]:
    """File, line and qualified name of every frame, innermost first; nothing if not known."""
    traceback = getattr(equation.source_info, "traceback", None)
    if traceback is None:
        return []
    codes, positions = traceback.raw_frames()
    line_of = type(traceback).code_addr2line
    return [
        (code.co_filename, line_of(code, position), getattr(code, "co_qualname", code.co_name))
        for code, position in zip(codes, positions)
    ]
