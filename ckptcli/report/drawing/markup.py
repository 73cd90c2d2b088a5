"""Elements of HTML and SVG as text.

Invariant: every string is escaped on the way in unless it is `Markup` already, so that no name of a
record can end a tag, an attribute or a script; what hides in it is written out.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from ckptcli.visible import visible

_VOID = frozenset({"meta", "link", "br"})


class Markup(str):
    """Text that is markup: it is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """`text` as it can stand between tags and in quoted attributes."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text)))


def joined(parts: Iterable[str]) -> Markup:
    """The parts one after another."""
    return Markup("".join(escaped(part) for part in parts))


def below(lines: Iterable[str]) -> Markup:
    """The lines below each other, where a page keeps the ends of lines."""
    return Markup("\n".join(escaped(line) for line in lines))


def number(value: float) -> str:
    """At most two decimals, without trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """`<name attributes>children</name>`.

    In the names of attributes `_` stands for `-`, and one at the end is dropped (`class_`); an
    attribute that is None is left out.
    """
    written = joined(
        Markup(f' {_attribute(key)}="{escaped(_value(value))}"')
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)
