"""The options of a command for click, made from their declarations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.names import NAMES, completing, listed
from ckptcli.options.option import Option
from ckptcli.options.several import is_list, numbers, whole_numbers, words
from ckptcli.options.variables import values_in, variable_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_METAVARS = {"integer": "N", "number": "X", "integers": "N[,N]", "numbers": "X[,X]"}


class WholeRange(click.IntRange):
    """A whole number within bounds; what is none is told what is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            int(value)
        except ValueError:
            self.fail(f"`{value}` is not a whole number{_bounds(self)}", param, ctx)
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A number within bounds; `nan`, which is within any, is none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            float(value)
        except ValueError:
            self.fail(f"`{value}` is not a number{_bounds(self)}", param, ctx)
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class WholeNumbers(WholeRange):
    """A whole number, or the text of several, each within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or not is_list(value):
            return super().convert(value, param, ctx)
        return _several(self, whole_numbers, super().convert, value, param, ctx)


class Numbers(FiniteRange):
    """A number, or the text of several, each within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or not is_list(value):
            return super().convert(value, param, ctx)
        return _several(self, numbers, super().convert, value, param, ctx)


class Words(click.types.StringParamType):
    """A word, or the text of several, each of the choices where there are any."""

    def __init__(self, choices: Sequence[str]) -> None:
        self._each: click.ParamType[Any] = click.Choice(choices) if choices else click.STRING

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = words(value)
        except ValueError as error:
            self.fail(f"in `{value}`, {error}", param, ctx)
        for word in found:
            self._each.convert(word, param, ctx)
        return value.strip()


def _several(
    of: click.ParamType[Any],
    read: Callable[[str], Sequence[float]],
    check: Callable[[Any, click.Parameter | None, click.Context | None], float],
    text: str,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> float | str:
    """The text, of which each number was checked; the number where it is but one."""
    try:
        found = read(text)
    except ValueError as error:
        of.fail(f"in `{text}`, {error}", param, ctx)
    checked = [check(number, param, ctx) for number in found]
    return checked[0] if len(checked) == 1 else text.strip()


def _bounds(of: click.IntRange | FiniteRange) -> str:
    """` of at least 1`, ` above 0 and at most 8`; "" without bounds."""
    least = "above" if of.min_open else "of at least"
    known = [(least, of.min), ("of at most" if of.min is None else "at most", of.max)]
    parts = [f"{words} {bound:g}" for words, bound in known if bound is not None]
    return f" {' and '.join(parts)}" if parts else ""


class FilePath(click.types.StringParamType):
    """A path as it was written. Not click's own, which takes a variable apart at each colon."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class DeclaredOption(click.Option):
    """A click option that knows its declaration."""

    def __init__(self, declaration: Option) -> None:
        self.declaration = declaration
        short = [f"-{declaration.short}"] if declaration.short else []
        super().__init__([*short, declaration.flag, declaration.name], **_attributes(declaration))

    def value_from_envvar(self, ctx: click.Context) -> Any:
        if self.declaration.kind != "strings":
            return super().value_from_envvar(ctx)
        text = self.resolve_envvar_value(ctx)
        return None if text is None else values_in(text, self.declaration.has_blanks) or None


def _attributes(option: Option) -> dict[str, Any]:
    help = option.help.format(names=listed(option.names)) if "{" in option.help else option.help
    if option.default_text:
        help = f"{help}  [default: {option.default_text}]"
    has_variable = not option.not_in_settings or option.name == "config_path"
    found: dict[str, Any] = {
        "help": help,
        "envvar": variable_of(option.key) if has_variable else None,
        "shell_complete": completing(NAMES[option.names]) if option.names in NAMES else None,
    }
    if option.kind == "boolean":
        return {**found, "is_flag": True}
    if option.kind == "strings":
        found["multiple"] = True
    elif option.kind == "pair":
        found["nargs"] = 2
    elif option.default is not None:
        found |= {"default": option.default, "show_default": True}
    return {**found, "type": type_of(option), "metavar": _metavar(option)}


def _metavar(option: Option) -> str | None:
    """None where click has a better one, the words that can be chosen."""
    if option.kind == "words":
        return f"{option.metavar or '|'.join(option.choices)}[,...]"
    return option.metavar or _METAVARS.get(option.kind)


def type_of(option: Option) -> click.ParamType[Any]:
    """What turns a word into a value, or refuses it."""
    if option.kind == "words":
        return Words(option.choices)
    if option.choices:
        return click.Choice(option.choices)
    if option.kind in ("integer", "integers"):
        kind = WholeRange if option.kind == "integer" else WholeNumbers
        return kind(_whole(option.at_least), _whole(option.at_most))
    if option.kind in ("number", "numbers"):
        least = option.at_least if option.above is None else option.above
        of = FiniteRange if option.kind == "number" else Numbers
        return of(least, option.at_most, min_open=option.above is not None)
    return FilePath() if option.names == "file" else click.STRING


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
