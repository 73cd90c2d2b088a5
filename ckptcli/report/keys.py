"""What the keys of the JSON mean where they are no word of the glossary: `ckpt explain`.

Invariant: the texts are those of the schema, which are those of the classes of the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ckptcli.measure.json_schema import run_schema

WHOLE = "the record"


@cache
def key_definitions() -> dict[str, str]:
    """Key -> what the schema says of it, for each object that has it."""
    found: dict[str, dict[str, list[str]]] = {}
    for place, key, text in _described():
        found.setdefault(key, {}).setdefault(text, []).append(place)
    return {
        key: " ".join(
            f"In {' and '.join(dict.fromkeys(places))} of the JSON: {text}"
            for text, places in texts.items()
        )
        for key, texts in sorted(found.items())
    }


def _described() -> Iterator[tuple[str, str, str]]:
    """The object, the key and its description, for every key of the schema."""
    schema = run_schema()
    yield from _keys(WHOLE, schema)
    for name, definition in schema["$defs"].items():
        yield from _keys(f"`{name}`", definition)


def _keys(place: str, schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key, value in schema.get("properties", {}).items():
        yield place, key, value["description"]
        yield from _keys(f"`{key}`", value)
