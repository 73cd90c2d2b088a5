"""Which keywords a function of the user's takes: of the function itself, or as its file says.

Invariant: what is refused here, a call would refuse.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ckptcli.checkpoint.user_code import MARK, SUFFIX
from ckptcli.errors import UsageError


def check_keywords(text: str, names: Iterable[str], taken: Sequence[str] | None) -> None:
    """Whether what `text` names takes these keywords; `taken` are all that it does, None for any.

    Raises:
        UsageError: it does not.
    """
    refused = None if taken is None else next((name for name in names if name not in taken), None)
    if refused is not None:
        if not taken:
            raise UsageError(f"`{text}` takes no keyword, so not `{refused}`", "leave out --set")
        known = ", ".join(taken)
        raise UsageError(
            f"`{text}` takes no keyword `{refused}`, only {known}", "give one of these"
        )


def keywords_taken(function: Callable[..., object]) -> list[str] | None:
    """All keywords that a function takes; None where it takes any, or does not tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not callable, or written in C
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [parameter.name for parameter in parameters if parameter.kind in named]


def keywords_written(text: str) -> list[str] | None:
    """The same of `FILE.py:MAKE`, without running the file; None where that does not tell."""
    stem, _, name = text.partition(MARK)
    try:
        tree = ast.parse(Path(f"{stem}{SUFFIX}").read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    meant = [node for node in ast.walk(tree) if _binds(node, name)]
    if len(meant) != 1 or meant[0] not in tree.body:
        return None
    (function,) = meant
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    if function.args.kwarg is not None:
        return None
    return [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]


def _binds(node: ast.AST, name: str) -> bool:
    """Whether the name may stand for something else from there on."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.alias):
        return "*" in node.name or name in (node.asname, node.name)
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
