"""Dataclasses that cost little until they are used.

The standard library writes and compiles six methods for each frozen dataclass, a third of a
millisecond a class: with the seventy that `ckpt log` loads it was a sixth of what that takes. Here
`__init__` is compiled when the first object is made, and the other methods are functions that all
classes share and that go by the list of fields.

Invariant: what `dataclasses` says of a class and does with its objects is the same (`fields`,
`replace`, `asdict`), and so are their equality, hashes, texts and pickles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """As `dataclasses.dataclass`, with those of its parameters that are in use."""

        def decorate(plain: type) -> type:
            plain.__doc__ = plain.__doc__ or plain.__name__  # or it is made of a signature, slowly
            made = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
            )(plain)
            methods = {"__init__": _init_on_first_use(made), "__repr__": _text}
            if eq:
                methods |= _comparisons(made, frozen)
            if frozen:
                methods |= _FROZEN
            if frozen and slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
            for name in methods.keys() - vars(made).keys():  # what a class has of its own stays
                setattr(made, name, methods[name])
            return made

        return decorate if cls is None else decorate(cls)


def _init_on_first_use(cls: Any) -> Callable[..., None]:
    def __init__(self: object, *values: object, **named: object) -> None:
        cls.__init__ = _init(cls)
        cls.__init__(self, *values, **named)

    return __init__


def _init(cls: type) -> Callable[..., None]:
    """The method that sets every field, of a frozen class too."""
    fields = sorted(dataclasses.fields(cls), key=lambda field: field.kw_only is True)
    scope: dict[str, Any] = {"_put": object.__setattr__, "_MISSING": MISSING}
    scope |= {f"_default_{field.name}": field.default for field in fields}
    scope |= {f"_make_{field.name}": field.default_factory for field in fields}
    lines = [f"_put(self, {f.name!r}, {_value(f)})" for f in fields if _value(f)]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    exec(f"def __init__({', '.join(_parameters(fields))}): {'; '.join(lines) or 'pass'}", scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameters(fields: Sequence[Field[Any]]) -> Iterator[str]:
    yield "self"
    is_keyword = False
    for field in fields:
        if not field.init:
            continue
        if field.kw_only and not is_keyword:
            is_keyword = True
            yield "*"
        if field.default is not MISSING:
            yield f"{field.name}=_default_{field.name}"
        else:
            yield field.name if field.default_factory is MISSING else f"{field.name}=_MISSING"


def _value(field: Field[Any]) -> str:
    """What `__init__` sets the field to; "" for one that it leaves to `__post_init__`."""
    name = field.name
    if field.default_factory is not MISSING:
        made = f"_make_{name}()"
        return f"{made} if {name} is _MISSING else {name}" if field.init else made
    if field.init:
        return name
    return "" if field.default is MISSING else f"_default_{name}"


@recursive_repr()
def _text(self: Any) -> str:
    shown = [f.name for f in dataclasses.fields(self) if f.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _comparisons(cls: type, frozen: bool) -> dict[str, Any]:
    """Equality by the values of the fields that count, and a hash where they cannot change."""
    values = _values_of([f.name for f in dataclasses.fields(cls) if f.compare])

    def __eq__(self: object, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: object) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of these fields; a tuple of one too, which is equal to itself."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_FROZEN = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}


def _state(self: Any) -> list[Any]:
    """For pickle and copy, which would assign to a field otherwise."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state):
        object.__setattr__(self, field.name, value)
