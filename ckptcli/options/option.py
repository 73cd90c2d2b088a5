"""One option as data, and the field that declares it.

The name of the field is the name in the record's `config`; the long name on the command line is it
with dashes, unless `key` says otherwise. The kind follows from the annotation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ckptcli.options.refusals import Refusal
from ckptcli.options.subjects import SUBJECTS

Kind = Literal[
    "integer",
    "number",
    "integers",
    "numbers",
    "boolean",
    "string",
    "strings",
    "words",
    "pair",
]
Section = Literal[
    "What to run",
    "How to measure",
    "Output",
    "Exit codes for scripts",
    "Workloads trg and chain",
    "Other",
]

_KINDS: dict[str, Kind] = {
    "int": "integer",
    "float": "number",
    "int | str": "integers",
    "float | str": "numbers",
    "bool": "boolean",
    "str": "string",
    "tuple[str, ...]": "strings",
    "tuple[str, str]": "pair",
}


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of an option.

    Attributes:
        name: of the field, and in the record's `config`.
        key: the long name, `max-time`: of the flag, in `[ckpt]`, and in the environment.
        kind: what its value is; "pair" is two words after one flag, "integers" and "numbers" are
            one number, or the text of several (`ckptcli.options.several`); "words" is one word or
            several in a text.
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
        library: the library whose engines alone look at it; "" for any.
        refused_by: the subjects for which it is refused instead of warned about: those where its
            loss would not be noticed.
        refuses: the other options that it does not go together with.
        not_in_child: why a measuring child process does not get it; "" if it does.
        not_reproduced: why the command that measures again does not name it; "" if it does.
        named_if_changed: whether that command leaves it out at its default.
        not_in_settings: why no file and no variable can set it; "" if they can.
        not_from_found: what it does that a burn.toml may not ask for which was only found, never
            named; "" for nothing.
        has_blanks: whether one of several values may have blanks in it, so that its variable does
            not separate them by blanks.
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
    library: str = ""
    refused_by: frozenset[str] = frozenset()
    refuses: tuple[Refusal, ...] = ()
    not_in_child: str = ""
    not_reproduced: str = ""
    named_if_changed: bool = False
    not_in_settings: str = ""
    not_from_found: str = ""
    has_blanks: bool = False

    @property
    def flag(self) -> str:
        """`--max-time`."""
        return f"--{self.key}"


def option(default: Any, help: str, **attributes: Any) -> Any:
    """A field that declares an option."""
    return Option(help, default=default, **attributes)


def declared(option: Option, name: str, annotation: str) -> Option:
    """The option with what the field that declares it says of it."""
    kind = _KINDS[annotation.removesuffix(" | None")]
    return replace(option, name=name, key=option.key or name.replace("_", "-"), kind=kind)
