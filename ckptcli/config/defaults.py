"""The table `[ckpt]`: defaults for the options of the commands, by their long names.

Keys are written with `-` or `_`. Which keys there are and what they hold, the caller says: only the
commands know their options.

Invariant: a value that is returned has the type of its option; what is wrong or unknown is told,
and costs only itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ckptcli.config.toml_file import NULL, shown
from ckptcli.errors import nearest_name
from ckptcli.options.option import Kind

TABLE = "ckpt"

_COMPLAINTS: dict[Kind, tuple[str, str]] = {
    "integer": ("not an integer", "write it without quotes and without a point"),
    "number": ("not a number", "write it without quotes"),
    "integers": ("not an integer or a list in a text", 'write it as `8` or `"4,8"`'),
    "numbers": ("not a number or a list in a text", 'write it as `0.3` or `"0.3,0.44"`'),
    "boolean": ("not a boolean", "write `true` or `false`, without quotes"),
    "string": ("not a string", "write it in quotes"),
    "words": ("not a string", 'write it in quotes, `"float32,float64"`'),
    "strings": ("not a string or a list of strings", 'write it as `["none", "balanced"]`'),
}


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A key whose value cannot be used. `reason` has the key and the value, not the file."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a `[ckpt]` table says.

    Attributes:
        values: key with `-` -> value of the option's type; a list where the option is repeatable.
        unknown: a sentence for each key that no option has.
        wrong: what has the wrong type.
    """

    values: dict[str, object]
    unknown: tuple[str, ...]
    wrong: tuple[WrongValue, ...]


def read_defaults(document: Mapping[str, object], kinds: Mapping[str, Kind]) -> Defaults:
    """The defaults in a burn.toml. `kinds` has every key that there is, written with `-`."""
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        wrong = WrongValue(f"`{TABLE}` is {shown(table)}, not a table", f"write `[{TABLE}]`")
        return Defaults({}, (), (wrong,))
    values: dict[str, object] = {}
    unknown: list[str] = []
    wrongs: list[WrongValue] = []
    for name, value in table.items():
        key = name.replace("_", "-")
        if key not in kinds:
            unknown.append(_unknown(name, kinds))
        elif key in values:
            wrongs.append(WrongValue(f"`{TABLE}.{key}` is given twice", "write it once"))
        elif not _has_kind(value, kinds[key]):
            wrongs.append(wrong_value(key, value, *_COMPLAINTS[kinds[key]]))
        elif any(isinstance(item, str) and NULL in item for item in _items(value)):
            wrongs.append(wrong_value(key, value, "which has a null character", "leave it out"))
        else:
            values[key] = _as_option_has_it(value, kinds[key])
    return Defaults(values, tuple(unknown), tuple(wrongs))


def wrong_value(key: str, value: object, complaint: str, hint: str) -> WrongValue:
    """A value of the right type that is wrong all the same."""
    return WrongValue(f"`{TABLE}.{key}` is {shown(value)}, {complaint}", hint)


def _unknown(name: str, kinds: Mapping[str, Kind]) -> str:
    nearest = nearest_name(name.replace("_", "-"), kinds)
    hint = f"did you mean `{nearest}`?" if nearest else f"known: {', '.join(sorted(kinds))}"
    return f"`{TABLE}.{name}` is no setting; {hint}"


def _as_option_has_it(value: object, kind: Kind) -> object:
    """One of several may stand alone."""
    return [value] if kind == "strings" and isinstance(value, str) else value


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _has_kind(value: object, kind: Kind) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    if kind == "integer":
        return isinstance(value, int)
    if kind == "number":
        return isinstance(value, int | float)
    if kind == "integers":
        return isinstance(value, int | str)
    if kind == "numbers":
        return isinstance(value, int | float | str)
    if kind == "strings" and isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str)
