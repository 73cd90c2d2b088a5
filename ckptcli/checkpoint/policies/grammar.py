"""How policies are written: `NAME`, `NAME(ARGUMENT, ...)`, an argument being a policy or a name.

The text is a Python expression of names, strings, calls and `|`, and `ast` reads it. What is no
identifier may stand there without quotes all the same, `save_only_these_names(block.0, my-name)`:
it is quoted first. Nothing is evaluated.

Invariant: whatever the text is, it is an expression or a `UsageError`.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator

from ckptcli.errors import UsageError

MOST_NESTED = 50
"""Brackets within brackets, so that no walk over an expression runs out of stack."""

MOST_LINKS = 200
"""Bars, and brackets after brackets: each is one level deeper too."""

_STRING = r"""\s*(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")\s*(?=[(),|]|$)"""
_TOKEN = re.compile(rf"({_STRING})|([(),|])|([^(),|]+)", re.DOTALL)


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """The tokens of `text`, and whether each is one of `(`, `)`, `,` and `|`; joined, the text."""
    for match in _TOKEN.finditer(text):
        yield match.group(2) is not None, match.group()


def split_outside_brackets(text: str, separator: str = ",") -> list[str]:
    """`text` cut at each separator that is not inside brackets or quotes; parts are stripped."""
    parts, depth = [""], 0
    for is_mark, token in _tokens(text):
        depth += is_mark * ((token == "(") - (token == ")"))
        if is_mark and token == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]


def expression(text: str) -> ast.expr:
    """The expression that `text` is: names, strings, calls and `|`, an empty side of it `()`.

    Raises:
        UsageError: brackets that do not match, or too much within each other.
    """
    try:
        return ast.parse(_quoted(text), mode="eval").body
    except SyntaxError as error:
        raise brackets_error(text) from error


def brackets_error(text: str) -> UsageError:
    """What to say of a policy that is closed too early, too late or twice."""
    name = text.partition("(")[0].strip()
    return UsageError(
        f"the brackets of policy `{_short(text)}` do not match",
        f"write `{_short(name)}(...)`, closed once",
    )


def name_of(node: ast.expr) -> str:
    """The name that an argument stands for; marks inside it are a part of it."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Call):
        return f"{name_of(node.func)}({','.join(map(name_of, node.args))})"
    if isinstance(node, ast.Tuple):
        return f"({','.join(map(name_of, node.elts))})" if node.elts else ""
    return "|".join(map(name_of, operands_of(node)))


def operands_of(node: ast.expr) -> list[ast.expr]:
    """What stands between the bars of `a | b | c`; of anything else, itself."""
    operands = []
    while isinstance(node, ast.BinOp):
        operands.append(node.right)
        node = node.left
    return [node, *reversed(operands)]


def _quoted(text: str) -> str:
    """The text as Python reads it: quotes around what is no identifier, no empty arguments."""
    pieces: list[str] = []
    depth = links = 0
    for is_mark, token in _tokens(text):
        piece = token.strip()
        if not is_mark:
            if piece:
                pieces.append(_as_operand(piece))
            continue
        depth += (piece == "(") - (piece == ")")
        if depth > MOST_NESTED:
            raise UsageError(
                f"policy `{_short(text)}` has more than {MOST_NESTED} brackets within brackets"
            )
        before = pieces[-1] if pieces else "("
        links += piece == "|" or before + piece == ")("
        if links > MOST_LINKS:
            raise UsageError(f"policy `{_short(text)}` has more than {MOST_LINKS} bars or calls")
        if before == "|" or (piece == "|" and before in ("(", ",")):
            pieces.append("()")
        if piece == "," and before in ("(", ","):
            continue
        pieces.append(piece)
    return "".join(pieces)


def _as_operand(piece: str) -> str:
    if re.fullmatch(_STRING, piece, re.DOTALL):
        return repr(re.sub(r"\\(.)", r"\1", piece[1:-1], flags=re.DOTALL))
    is_identifier = piece.isascii() and piece.isidentifier() and not keyword.iskeyword(piece)
    return piece if is_identifier else repr(piece)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
