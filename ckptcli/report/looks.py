"""How each thing looks wherever it is drawn: a glyph, its ASCII, two colours, a style of a screen.

Screen, Markdown, page, SVG and PNG take it from here. Meaning never hangs on colour alone: kinds of
storages have glyphs, cells of the graph letters, verdicts are words.

Invariants: one glyph and one letter stand for one thing, in every legend; a value that is saved or
computed again looks the same as a node and as a storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """One thing.

    Attributes:
        glyph: On a screen that has blocks.
        letter: On any other screen, and in the cells of a page.
        light: Colour behind dark text.
        dark: Colour behind light text.
        style: On a screen with colours.
    """

    glyph: str
    letter: str
    light: str
    dark: str
    style: str


_PARAMETER = Look("P", "P", "#c5ccd3", "#454c56", "white")
_INPUT = Look("I", "I", "#a3adb8", "#5d6672", "bright_black")
_SAVED = Look("█", "S", "#9ecbff", "#1f4f8f", "blue")
_RECOMPUTED = Look("▓", "R", "#ffc680", "#8a4b08", "yellow")
_OUTPUT = Look("O", "O", "#a7e3b4", "#1b5e2c", "green")
_DROPPED = Look("D", "D", "#ffffff", "#0d1117", "dim")

WHYS = {
    "parameter": _PARAMETER,
    "optimizer": Look("A", "A", "#b9c7c0", "#3f4f48", "bright_white"),
    "buffer": Look("b", "b", "#dcd3c2", "#57503f", "white"),
    "input": _INPUT,
    "saved": _SAVED,
    "recomputed": _RECOMPUTED,
    "value": Look("v", "v", "#d5e8c8", "#3b5330", "default"),
    "gradient": Look("▒", "g", "#d8b9ff", "#5a3a94", "magenta"),
    "gradient of a parameter": Look("░", "G", "#f5b7d6", "#8a2d5d", "bright_magenta"),
    "output": _OUTPUT,
    "temporary": Look("t", "t", "#f0e3a1", "#6b5d12", "cyan"),
}
"""What a live storage is, in the order in which a bar shows it: what stays comes first."""

OTHER = "other"
"""What a file of another version may call a storage or a node."""

_OTHER = Look("?", "?", "#e3e3e3", "#3a3a3a", "default")

FATES = {
    "parameter": _PARAMETER,
    "input": _INPUT,
    "saved": _SAVED,
    "recomputed": _RECOMPUTED,
    "dropped": _DROPPED,
    "output": _OUTPUT,
}
"""What became of a node."""


@dataclass(frozen=True, slots=True)
class Tone:
    """What a verdict says at a glance: the class of a page, its colours, a style of a screen."""

    name: str
    light: str
    dark: str
    style: str


GOOD = Tone("good", "#1a7f37", "#3fb950", "green")
WARN = Tone("warn", "#9a6700", "#d29922", "yellow")
BAD = Tone("bad", "#cf222e", "#ff7b72", "red")
WRONG = Tone("wrong", "#cf222e", "#ff7b72", "bold red")
QUIET = Tone("quiet", "#59636e", "#9198a1", "dim")

TONES = (GOOD, WARN, BAD, WRONG, QUIET)

WORDS = {
    "reference": QUIET,
    "effective": GOOD,
    "held only": WARN,
    "no effect": WARN,
    "worse": BAD,
    "wrong": WRONG,
    "agrees": GOOD,
    "identical": GOOD,
    "differs": BAD,
    "faster": GOOD,
    "slower": WARN,
    "same": QUIET,
    "unclear": WARN,
    "n/a": QUIET,
}
"""Every verdict, on memory, time and agreement."""


def why_look(why: str) -> Look:
    """The look of what a storage is."""
    return WHYS.get(why, _OTHER)


def fate_look(fate: str) -> Look:
    """The look of what became of a node."""
    return FATES.get(fate, _OTHER)


def word_style(word: str) -> str:
    """The style of a verdict on a screen; none of another word."""
    tone = WORDS.get(word)
    return "" if tone is None else tone.style


def bytes_by_look(bytes_by_why: Mapping[str, int]) -> dict[str, int]:
    """The bytes in the order of a bar; what nobody here knows is together, as `other`."""
    known = {why: bytes_by_why[why] for why in WHYS if why in bytes_by_why}
    other = sum(size for why, size in bytes_by_why.items() if why not in WHYS)
    return known | ({OTHER: other} if other else {})


def legend_of(whys: Iterable[str]) -> list[str]:
    """The kinds that occur, each once, in the order of a bar."""
    return list(bytes_by_look(dict.fromkeys(whys, 1)))
