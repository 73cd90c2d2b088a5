"""What `--set` says: `depth=4`, in a sweep `depth=2,4,8`, the keywords that `MAKE` is called with.

Invariant: the text of a keyword, `keyword_texts`, reads as the same value again.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ckptcli.errors import UsageError
from ckptcli.options.several import anything, as_value

Keyword: TypeAlias = bool | int | float | str


def keyword_lists(texts: Sequence[str]) -> dict[str, list[Keyword]]:
    """The values of each keyword, by its name: one or several.

    Raises:
        UsageError: a text that is not NAME=VALUE, or two of one name.
    """
    found: dict[str, list[Keyword]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        if not name.isidentifier() or keyword.iskeyword(name) or not values:
            raise UsageError(f"--set {text} is not NAME=VALUE", "write one such as depth=4")
        if name in found:
            raise UsageError(f"--set {name} is there twice", f"give one --set {name}=VALUE")
        try:
            found[name] = anything(values)
        except ValueError as error:
            raise UsageError(f"--set {text}: {error}", "write values such as 2,4,8") from None
    return found


def keywords_in(texts: Sequence[str]) -> dict[str, Keyword]:
    """The value of each keyword of one program, by its name.

    Raises:
        UsageError: as `keyword_lists`, or several values.
    """
    lists = keyword_lists(texts)
    for name, values in lists.items():
        if len(values) > 1:
            raise UsageError(
                f"--set {name} has {len(values)} values where one program has one",
                "give one, or all of them to `ckpt sweep`",
            )
    return {name: value for name, (value,) in lists.items()}


def keyword_texts(keywords: Mapping[str, Keyword]) -> tuple[str, ...]:
    """The texts of the keywords, by their names: programs that are alike have the same."""
    return tuple(f"{name}={shown_keyword(keywords[name])}" for name in sorted(keywords))


def shown_keyword(value: Keyword) -> str:
    """`4`, `0.5`, `true`, `gelu`, `"a,b"`."""
    if isinstance(value, bool):
        return str(value).lower()
    return as_value(value) if isinstance(value, str) else str(value)
