"""Conditions on points: `layers * n <= 65536 and dtype == 'float32'`.

The text is a Python expression of names, numbers, texts, arithmetic, comparisons, `and`, `or` and
`not`, and `ast` reads it. Nothing else is an expression here, and nothing of the text is executed.

Invariant: whatever the text is, asking it ends in a truth or in a `UsageError`, soon.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ckptcli.errors import UnknownNameError, UsageError

LONGEST = 1000
"""Characters, so that no walk over the expression runs out of stack."""

LARGEST_BASE, LARGEST_EXPONENT = 10**6, 16
"""Of `**`, whose powers of powers would not end."""

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Where:
    """A condition, read once."""

    def __init__(self, text: str) -> None:
        """Raises:
        UsageError: it is no condition.
        """
        self.text = text
        if len(text) > LONGEST:
            raise UsageError(f"--where is {len(text)} characters long", f"at most {LONGEST} are")
        try:
            self._body = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._wrong(
                "is no condition", "write one such as 'layers * n <= 65536'"
            ) from None

    def holds(self, values: Mapping[str, object]) -> bool:
        """Whether it does for these values, by name.

        Raises:
            UsageError: something that no condition has, or values that do not go together.
            UnknownNameError: a name without a value.
        """
        try:
            return bool(self._value(self._body, values))
        except (TypeError, ArithmeticError, RecursionError) as error:
            raise self._wrong(f"cannot be told: {error}", "see `ckpt sweep --help`") from None

    def _value(self, node: ast.expr, values: Mapping[str, object]) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = (self._value(part, values) for part in node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, values)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, values)
        if isinstance(node, ast.Compare):
            return self._comparison(node, values)
        if isinstance(node, ast.Name):
            return self._named(node.id, values)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return node.value
        raise self._unknown(node)

    def _unary(self, node: ast.UnaryOp, values: Mapping[str, object]) -> Any:
        operand = self._value(node.operand, values)
        if isinstance(node.op, ast.Not):
            return not operand
        if isinstance(node.op, ast.USub | ast.UAdd):
            return -operand if isinstance(node.op, ast.USub) else +operand
        raise self._unknown(node)

    def _arithmetic(self, node: ast.BinOp, values: Mapping[str, object]) -> Any:
        left, right = (_number(self._value(side, values)) for side in (node.left, node.right))
        if isinstance(node.op, ast.Pow):
            if abs(right) > LARGEST_EXPONENT or abs(left) > LARGEST_BASE:
                most = f"{LARGEST_BASE}**{LARGEST_EXPONENT}"
                raise self._wrong(f"has {left}**{right}", f"at most {most} is reckoned with")
            return left**right
        if type(node.op) not in _ARITHMETIC:
            raise self._unknown(node)
        return _ARITHMETIC[type(node.op)](left, right)

    def _comparison(self, node: ast.Compare, values: Mapping[str, object]) -> bool:
        left = self._value(node.left, values)
        for operation, other in zip(node.ops, node.comparators):
            if type(operation) not in _COMPARISONS:
                raise self._unknown(node)
            right = self._value(other, values)
            if not _COMPARISONS[type(operation)](left, right):
                return False
            left = right
        return True

    def _named(self, name: str, values: Mapping[str, object]) -> object:
        if name not in values:
            raise UnknownNameError(f"name in --where `{self.text}`", name, values)
        return values[name]

    def _unknown(self, node: ast.AST) -> UsageError:
        shown = ast.unparse(node)
        what = "numbers, names, + - * / // % **, comparisons, and, or, not"
        return self._wrong(f"has `{shown}`, which no condition has", f"conditions are of {what}")

    def _wrong(self, complaint: str, hint: str) -> UsageError:
        return UsageError(f"--where `{self.text[:200]}` {complaint}", hint)


def _number(value: Any) -> Any:
    """The value; a text, which `*` would repeat, is none to reckon with."""
    if isinstance(value, str):
        raise TypeError(f"`{value}` is no number")
    return value
