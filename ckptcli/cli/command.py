"""A command whose options are declared as data: what click parses comes out as one typed object.

Values come from the flag, then the environment, then the table `[ckpt]` of the burn.toml, then the
default.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from ckptcli.cli.click_options import DeclaredOption
from ckptcli.cli.streams import warn
from ckptcli.options.commands import options_class, options_classes
from ckptcli.options.group import Options
from ckptcli.options.listing import built, options_of, settings_of
from ckptcli.options.option import Section
from ckptcli.options.refusals import settled
from ckptcli.options.variables import unknown_variables, variable_of

if TYPE_CHECKING:
    from ckptcli.cli.line import Line

_META = "ckptcli.found"
_WORDS = "ckptcli.words"
LOGGING = ("run", "log")
"""The commands that the section `[autodiff.logger]` concerns."""

OTHER = get_args(Section)[-1]
"""Where the help lists the help option itself."""


class OptionsCommand(click.Command):
    """Calls back with the options object, the `Line`, and the arguments by their names."""

    def __init__(
        self, name: str, options: type[Options], *arguments: click.Argument, **more: Any
    ) -> None:
        self.options_class = options
        declared = [DeclaredOption(option) for option in options_of(options)]
        super().__init__(
            name,
            params=[*arguments, *declared],
            context_settings={"help_option_names": ["-h", "--help"]},
            **more,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        warnings: Sequence[str] = ()
        ctx.meta[_WORDS] = ("ckpt", str(self.name), *args)
        if not ctx.resilient_parsing:
            warnings = self._take_defaults(ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except click.BadParameter as error:
            _name_the_variable(error, ctx)
            raise
        if not ctx.resilient_parsing:
            self._let_give_way(ctx)
        warn(warnings, quiet=bool(ctx.params.get("quiet")))
        self._tell_what_a_found_file_sets(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        values = dict(ctx.params)
        options: Any = built(
            self.options_class,
            {option.name: values.pop(option.name) for option in options_of(self.options_class)},
        )
        assert self.callback is not None
        return ctx.invoke(self.callback, options, self._line(ctx), **values)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in sections; the help option is the last. Arguments are in the text above."""
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in get_args(Section)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            section = param.declaration.section if isinstance(param, DeclaredOption) else OTHER
            if record is not None and not isinstance(param, click.Argument):
                rows[section].append(record)
        for section, records in rows.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def _take_defaults(self, ctx: click.Context, args: Sequence[str]) -> Sequence[str]:
        """Give `ctx` the defaults of the burn.toml; returns warnings."""
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        help_option = self.get_help_option(ctx)
        if help_option is not None and help_option.name in given:
            return ()
        from ckptcli.cli.settings import checked_defaults, found_config

        known = settings_of(options_classes())
        named = given.get("config_path") or os.environ.get(variable_of("config"))
        ctx.meta[_META] = found = found_config(named, known)
        defaults = checked_defaults(found, known)
        names = {option.key: option.name for option in options_of(self.options_class)}
        ctx.default_map = {
            names[key]: value for key, value in defaults.values.items() if key in names
        }
        return [
            *(f"{found.path}: {text}" for text in defaults.unknown),
            *(f"{found.path}: {wrong.reason}; {wrong.hint}" for wrong in defaults.wrong),
            *unknown_variables(os.environ, [*known, "config"]),
        ]

    def _tell_what_a_found_file_sets(self, ctx: click.Context) -> None:
        """A burn.toml that nobody named does nothing unseen; it cannot ask for quiet itself."""
        options = options_of(self.options_class)
        sources = {option.key: ctx.get_parameter_source(option.name) for option in options}
        by_caller = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
        if _META not in ctx.meta or (ctx.params.get("quiet") and sources["quiet"] in by_caller):
            return
        from ckptcli.cli.settings import tell_what_is_set

        keys = [key for key, source in sources.items() if source is ParameterSource.DEFAULT_MAP]
        tell_what_is_set(ctx.meta[_META], keys, logs=self.name in LOGGING)

    def _let_give_way(self, ctx: click.Context) -> None:
        """A default that does not go together with what is nearer to the command line is none."""
        options = options_of(self.options_class)
        for name, value in settled(options, ctx.params, self._origins(ctx)).items():
            is_default = value == next(of.default for of in options if of.name == name)
            ctx.params[name] = value
            if is_default:
                ctx.set_parameter_source(name, ParameterSource.DEFAULT)

    def _origins(self, ctx: click.Context) -> dict[str, str]:
        from ckptcli.cli.line import ORIGINS
        from ckptcli.options.origins import DEFAULT

        options = options_of(self.options_class)
        sources = {option.name: ctx.get_parameter_source(option.name) for option in options}
        return {
            name: DEFAULT if source is None else ORIGINS.get(source, DEFAULT)
            for name, source in sources.items()
        }

    def _line(self, ctx: click.Context) -> Line:
        from ckptcli.cli.line import Line

        options = options_of(self.options_class)
        return Line(options, self._origins(ctx), ctx.meta[_META], ctx.meta[_WORDS])


def options_command(
    name: str, *arguments: click.Argument, options: type[Options] | None = None
) -> Callable[[Callable[..., Any]], OptionsCommand]:
    """Decorator: the command `name` with its declared options; its help is the docstring."""

    def decorate(function: Callable[..., Any]) -> OptionsCommand:
        return OptionsCommand(
            name,
            options or options_class(name),
            *arguments,
            callback=function,
            help=inspect.cleandoc(function.__doc__ or ""),
        )

    return decorate


def _name_the_variable(error: click.BadParameter, ctx: click.Context) -> None:
    """Have the message name the environment variable where the value comes from one."""
    option = error.param
    if not isinstance(option, DeclaredOption):
        return
    if ctx.get_parameter_source(option.declaration.name) is ParameterSource.ENVIRONMENT:
        error.param_hint = f"environment variable {variable_of(option.declaration.key)}"
