"""One option as data, and how a dataclass declares it.

`option` makes a field of a group, `group` a field of a command's options that holds a whole group.
The name of the field is the name in the record's `config`; the long name on the command line is it
with dashes, unless `key` says otherwise. The kind follows from the annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, replace
from typing import Any, Literal, TypeVar

from ckptcli.options.subjects import SUBJECTS

Kind = Literal["integer", "number", "boolean", "string", "strings", "pair"]
Section = Literal[
    "What to run",
    "How to measure",
    "Output",
    "Exit codes for scripts",
    "Workloads trg and chain",
    "Other",
]

OPTION, GROUP, CHANGES = "option", "group", "changes"
"""Keys of the metadata of a field."""

_KINDS: dict[str, Kind] = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "tuple[str, ...]": "strings",
    "tuple[str, str]": "pair",
}

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of an option.

    Attributes:
        name: of the field, and in the record's `config`.
        key: the long name, `max-time`: of the flag, in `[ckpt]`, and in the environment.
        kind: what its value is; "pair" is two words after one flag.
        default: the value without anything; None for "not given".
        help: one sentence; `{names}` in it stands for what `names` gives.
        section: where the help lists it.
        short: a one-letter flag; "" for none.
        metavar: what the help calls the value; "" for one that follows from the kind.
        choices: the words it takes; empty for any value of the kind.
        at_least, at_most: the bounds of a number; None for any.
        above: a bound that the number must not reach.
        default_text: the default in words, where the value is None or empty.
        names: which names complete it, a key of `ckptcli.cli.names.NAMES`; "file" for a path.
        subjects: what the option has an effect on, of `subjects.SUBJECTS`.
        by_workload: whether the workload says itself if it has one, by its registry's `uses`.
        refused_by: the subjects for which it is refused instead of warned about: those where its
            loss would not be noticed.
        not_in_child: why a measuring child process does not get it; "" if it does.
        not_reproduced: why the command that measures again does not name it; "" if it does.
        named_if_changed: whether that command leaves it out at its default.
        not_in_settings: why no file and no variable can set it; "" if they can.
    """

    help: str
    section: Section = "What to run"
    name: str = ""
    key: str = ""
    kind: Kind = "string"
    default: Any = None
    short: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    default_text: str = ""
    names: str = ""
    subjects: frozenset[str] = SUBJECTS
    by_workload: bool = False
    refused_by: frozenset[str] = frozenset()
    not_in_child: str = ""
    not_reproduced: str = ""
    named_if_changed: bool = False
    not_in_settings: str = ""

    @property
    def flag(self) -> str:
        """`--max-time`."""
        return f"--{self.key}"


def option(default: Any, help: str, **attributes: Any) -> Any:
    """A field that declares an option."""
    return field(default=default, metadata={OPTION: Option(help, default=default, **attributes)})


def group(cls: type[Options], **changes: Mapping[str, object]) -> Options:
    """A field that holds a group; `changes` are other attributes of its options, by their names."""

    def with_defaults() -> Options:
        defaults = {name: of["default"] for name, of in changes.items() if "default" in of}
        return cls(**defaults)

    made: Any = field(default_factory=with_defaults, metadata={GROUP: cls, CHANGES: changes})
    return made  # type: ignore[no-any-return]


def declared(of: Field[Any]) -> Option:
    """The option that a field declares."""
    declaration: Option = of.metadata[OPTION]
    kind = _KINDS[str(of.type).removesuffix(" | None")]
    key = declaration.key or of.name.replace("_", "-")
    return replace(declaration, name=of.name, key=key, kind=kind)
