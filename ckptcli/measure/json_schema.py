"""The JSON Schema of `ckpt.run/1`, made from the classes of the record.

`python -m ckptcli.measure.json_schema` writes the file that is shipped; a test holds it against the
classes. Descriptions are those of the docstrings. The dialect is draft 2020-12.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ckptcli.measure.fields import (
    Entry,
    Least,
    MayBeInfinite,
    Most,
    NotEmpty,
    Pattern,
    Texts,
    Words,
    class_in,
    entries_of,
    options_of,
    without_marks,
)
from ckptcli.measure.record import SCHEMA, RunRecord

SHIPPED = Path(__file__).with_name("schema") / "run-1.json"
MOST_ENTRIES = 2000
"""Of a list that grows with the program."""

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_SETTING = {"type": ["string", "integer", "number", "boolean", "null"]}
_SETTINGS = {"type": [*_SETTING["type"], "array"], "items": {"type": ["string", "number"]}}

Schema = dict[str, Any]


def run_schema() -> Schema:
    """The schema as plain data."""
    definitions: dict[str, Schema] = {}
    whole = _object(RunRecord, definitions)
    tag = {"const": SCHEMA, "description": "This schema, and its version."}
    whole["properties"] = {"schema": tag, **whole["properties"]}
    whole["required"] = ["schema", *whole["required"]]
    whole["properties"]["config"] |= {"additionalProperties": _SETTINGS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:ckptcli:schema:run-1",
        "title": SCHEMA,
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: type, definitions: dict[str, Schema]) -> Schema:
    properties = {
        entry.key: _described(entry, definitions, is_null)
        for entry, is_null in _flattened(kind, False)
    }
    return {
        "type": "object",
        "description": _summary(kind),
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _flattened(kind: type, is_null: bool) -> list[tuple[Entry, bool]]:
    """Every key, and whether it is null where the flat object around it is not there."""
    found: list[tuple[Entry, bool]] = []
    for entry in entries_of(kind):
        if entry.is_flat:
            optional = type(None) in options_of(entry.hint)
            found += _flattened(class_in(entry.hint), is_null or optional)
        else:
            found.append((entry, is_null))
    return found


def _described(entry: Entry, definitions: dict[str, Schema], is_null: bool) -> Schema:
    assert entry.doc, f"{entry.name} has no description"
    options = options_of(entry.hint)
    if is_null and type(None) not in options:
        options = (*options, type(None))
    return {"description": entry.doc, **_any_of(options, definitions)}


def _any_of(options: Sequence[Any], definitions: dict[str, Schema]) -> Schema:
    schemas = [_schema(option, definitions) for option in options]
    if len(schemas) == 1:
        return schemas[0]
    if len(schemas) == 2 and schemas[1] == {"type": "null"} and "type" in schemas[0]:
        known = schemas[0]["type"]
        kinds = dict.fromkeys([*([known] if isinstance(known, str) else known), "null"])
        widened = {**schemas[0], "type": list(kinds)}
        if "enum" in widened:
            widened["enum"] = [*widened["enum"], None]
        return widened
    return {"anyOf": schemas}


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    bare, marks = without_marks(hint)
    if dataclasses.is_dataclass(bare):
        assert isinstance(bare, type)
        return {"$ref": f"#/$defs/{_define(bare, definitions)}"}
    schema: Schema
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if origin is Sequence:
        items = _any_of(options_of(arguments[0]), definitions)
        bounds = {"minItems": 1} if any(isinstance(mark, NotEmpty) for mark in marks) else {}
        return {"type": "array", "items": items, **bounds}
    if origin in (dict, Mapping):
        schema = {"type": "object", "additionalProperties": _values(arguments[1], definitions)}
        return schema | _texts(marks)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    schema = {"type": _TYPES[bare]}
    for mark in marks:
        schema |= _bounds(mark)
    if any(isinstance(mark, MayBeInfinite) for mark in marks):
        schema["type"] = [schema["type"], "null"]
    return schema


def _values(hint: Any, definitions: dict[str, Schema]) -> Schema:
    return dict(_SETTING) if hint is object else _any_of(options_of(hint), definitions)


def _texts(marks: Sequence[Any]) -> Schema:
    """The keys of an object that have to be there."""
    named = {key: doc for mark in marks if isinstance(mark, Texts) for key, doc in mark.keys}
    if not named:
        return {}
    properties = {key: {"type": "string", "description": doc} for key, doc in named.items()}
    return {"required": list(named), "properties": properties}


def _bounds(mark: Any) -> Schema:
    if isinstance(mark, Most):
        return {"maximum": int(mark.value)}
    if isinstance(mark, Least):
        return {"minimum": int(mark.value) if mark.value == int(mark.value) else mark.value}
    if isinstance(mark, Pattern):
        return {"pattern": mark.expression}
    return {"enum": list(mark.words)} if isinstance(mark, Words) else {}


def _define(kind: type, definitions: dict[str, Schema]) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _object(kind, definitions)
    return name


def _summary(kind: type) -> str:
    """The docstring up to its first section, on one line."""
    text, *_ = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")
    return " ".join(text.split())


def schema_text() -> str:
    """The content of the file."""
    return json.dumps(run_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SHIPPED.write_text(schema_text(), encoding="utf-8")
