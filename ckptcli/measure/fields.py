"""What a frozen dataclass says of its fields: their keys, types, bounds and descriptions.

A field is a key. Its metadata may give the key another name (`key`), splice the keys of its class
into the object around it (`FLAT`), or say that it is derived: written for readers and never read
(`DERIVED`, and `derived` for a property). `Annotated` adds bounds; the section `Attributes:` of the
class's docstring has the description of each.

Invariant: the classes are the only description; the codec and the JSON schema are made from it.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Annotated, Any, Protocol, TypeVar


class Mark(Protocol):
    """In `Annotated`: what a value of the right type has to be besides; its text says so."""

    def holds(self, value: Any) -> bool: ...


@dataclass(frozen=True, slots=True)
class Least:
    """The smallest number that a field takes."""

    value: float

    def holds(self, value: Any) -> bool:
        return bool(value >= self.value)

    def __str__(self) -> str:
        return f"of at least {self.value:g}"


@dataclass(frozen=True, slots=True)
class Most:
    """The largest number that a field takes."""

    value: float

    def holds(self, value: Any) -> bool:
        return bool(value <= self.value)

    def __str__(self) -> str:
        return f"and at most {self.value:g}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a text looks like, as a regular expression."""

    expression: str

    def holds(self, value: Any) -> bool:
        return re.fullmatch(self.expression, value) is not None

    def __str__(self) -> str:
        return f"like {self.expression}"


@dataclass(frozen=True, slots=True)
class Words:
    """The words that a text is one of."""

    words: tuple[str, ...]

    def holds(self, value: Any) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return f"of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """A list that has something."""

    def holds(self, value: Any) -> bool:
        return len(value) > 0

    def __str__(self) -> str:
        return "of at least one"


@dataclass(frozen=True, slots=True)
class Texts:
    """The keys of an object that have to be there, each a text, and what they are."""

    keys: tuple[tuple[str, str], ...]

    def holds(self, value: Any) -> bool:
        return all(isinstance(value.get(key), str) for key, _ in self.keys)

    def __str__(self) -> str:
        return f"with the texts {', '.join(key for key, _ in self.keys)}"


@dataclass(frozen=True, slots=True)
class MayBeInfinite:
    """A number that may be infinite or nan; JSON has null for it, which is read as nan."""

    def holds(self, value: Any) -> bool:
        return True

    def __str__(self) -> str:
        return ""


LARGEST_COUNT = 2**63 - 1
"""What a signed integer of 64 bits holds; no integer of a record is larger."""

LARGEST_FIGURE = 1e9
"""Of seconds it is 30 years; sums and squares of such figures are still numbers."""

LARGEST_SHARE = 1e18
"""Of one time by another, where the shortest that a clock tells is a nanosecond."""

Count = Annotated[int, Least(0)]
Positive = Annotated[int, Least(1)]
Bytes = Annotated[int, Least(0)]
Seconds = Annotated[float, Least(0), Most(LARGEST_FIGURE)]
Share = Annotated[float, Least(0), Most(LARGEST_SHARE)]
Figure = Annotated[float, MayBeInfinite()]


Getter = TypeVar("Getter", bound=Callable[..., Any])


def derived(getter: Getter) -> Getter:
    """Under `@property`: it is written as a key, for readers; nothing reads it back."""
    getter.is_derived = True  # type: ignore[attr-defined]
    return getter


FLAT: Mapping[str, Any] = {"flat": True}
"""Metadata of a field whose keys stand in the object around it."""

DERIVED: Mapping[str, Any] = {"derived": True}
"""Metadata of a field that is written and never read; a file gets its default."""

HIDDEN: Mapping[str, Any] = {"hidden": True}
"""Metadata of a field that is no key: it follows from others, and another key says it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a class: the attribute behind it, and what its hint says.

    Attributes:
        hint: its type, marks included.
        doc: what its docstring says of it.
    """

    name: str
    key: str
    hint: Any
    is_flat: bool
    is_derived: bool
    default: Any
    doc: str


@cache
def entries_of(kind: type) -> tuple[Entry, ...]:
    """The keys of a dataclass in order, its derived properties last."""
    hints = typing.get_type_hints(kind, include_extras=True)
    docs = attribute_docs(kind)
    fields = [
        _entry(f.name, hints[f.name], docs.get(f.name, ""), f.metadata, _default(f))
        for f in dataclasses.fields(kind)
        if not f.metadata.get("hidden")
    ]
    return (*fields, *_property_entries(kind))


def _property_entries(kind: type) -> Iterator[Entry]:
    for name, value in vars(kind).items():
        if isinstance(value, property) and hasattr(value.fget, "is_derived"):
            assert value.fget is not None
            hint = typing.get_type_hints(value.fget, include_extras=True)["return"]
            doc = " ".join((value.fget.__doc__ or "").split())
            yield _entry(name, hint, doc, {"derived": True}, MISSING)


def _entry(name: str, hint: Any, doc: str, metadata: Mapping[str, Any], default: Any) -> Entry:
    return Entry(
        name=name,
        key=metadata.get("key", name),
        hint=hint,
        is_flat=metadata.get("flat", False),
        is_derived=metadata.get("derived", False),
        default=default,
        doc=doc,
    )


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


@cache
def without_marks(hint: Any) -> tuple[Any, tuple[Mark, ...]]:
    """The type in a hint, and what `Annotated` adds to it."""
    if typing.get_origin(hint) is Annotated:
        bare, *marks = typing.get_args(hint)
        return bare, tuple(marks)
    return hint, ()


def class_in(hint: Any) -> Any:
    """The dataclass in a hint that may be None as well."""
    return next(
        option for option in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(option)
    )


@cache
def options_of(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; the hint alone where it is none."""
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if is_union else (hint,)


def attribute_docs(kind: type) -> dict[str, str]:
    """Attribute -> its text in the section `Attributes:` of the class's docstring."""
    lines = (kind.__doc__ or "").expandtabs().splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() == "Attributes:"), len(lines))
    docs: dict[str, str] = {}
    names: list[str] = []
    indent = None
    for line in lines[start + 1 :]:
        depth = len(line) - len(line.lstrip())
        indent = depth if indent is None and line.strip() else indent
        head, colon, rest = line.strip().partition(": ")
        if depth == indent and colon:
            names = [name.strip() for name in head.split(",")]
            docs |= dict.fromkeys(names, rest)
        else:
            docs |= {name: f"{docs[name]} {line.strip()}".strip() for name in names}
    return docs


@cache
def keys_of(kind: type) -> tuple[str, ...]:
    """Every key that an object of the class is written with."""
    return tuple(
        key
        for entry in entries_of(kind)
        for key in (keys_of(class_in(entry.hint)) if entry.is_flat else (entry.key,))
    )
