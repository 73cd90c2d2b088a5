"""A group of options: a class whose fields declare them, and an object that has their values.

A group is what a frozen dataclass is, without what a dataclass costs: that writes and compiles
methods for each class, together half of what a help text would take.

Invariant: an object never changes; every field has a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from ckptcli.options.option import Option, declared

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """What type checkers are told; at run time nothing."""
        return lambda cls: cls


Member = TypeVar("Member", bound="Options")


class Group:
    """A field that holds a group; `changes` are other attributes of its options, by their names."""

    def __init__(self, cls: type[Options], changes: Mapping[str, Mapping[str, Any]]) -> None:
        self.cls = cls
        self.changes = changes

    def default(self) -> Options:
        """The group with its defaults, as the changes have them."""
        defaults = {name: of["default"] for name, of in self.changes.items() if "default" in of}
        return self.cls(**defaults)


def group(cls: type[Member], **changes: Mapping[str, Any]) -> Member:
    """A field that holds a group."""
    return cast(Member, Group(cls, changes))


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """Base of every group. `fields` has what each field declares, in order, those of a base first;
    a field that is declared again stays in its place.
    """

    fields: ClassVar[Mapping[str, Option | Group]] = {}

    def __init_subclass__(cls) -> None:
        fields = dict(cls.fields)  # those of its base, each in its place also where it is changed
        for name, annotation in cls.__annotations__.items():
            of = cls.__dict__[name]
            fields[name] = of if isinstance(of, Group) else declared(of, name, annotation)
            delattr(cls, name)  # so that the object's value is all that has this name
        cls.fields = fields

    def __init__(self, **values: Any) -> None:
        for name, of in self.fields.items():
            if name in values:
                value = values.pop(name)
            else:
                value = of.default() if isinstance(of, Group) else of.default
            object.__setattr__(self, name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(values)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot change")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"
