"""The root command: lazy subcommands, and how a run ends.

`ckptcli.exit_codes` has the codes. A closed pipe ends quietly.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from ckptcli.cli.idle_threads import let_go_of_cores
from ckptcli.cli.standard_streams import discard, open_standard_streams
from ckptcli.cli.streams import say
from ckptcli.errors import CkptError, UnknownNameError
from ckptcli.exit_codes import DONE, FAILED, INTERRUPTED
from ckptcli.version import VERSION
from ckptcli.visible import visible

COMMANDS = {
    "run": "Profile a workload: memory held and peak, recomputation, time, for each strategy.",
    "sweep": "Profile many points: sizes, dtypes, libraries, each under each strategy.",
    "fits": "Say how large a size may be under each strategy before it does not fit a device.",
    "log": "Print which values a backward pass retrieves and which nodes are computed again.",
    "check": "Prove that a strategy changes no gradient and no recomputed value.",
    "saved": "List what each strategy holds after the forward pass, and why.",
    "plan": "Plan what to keep and what to compute again within a memory budget.",
    "compare": "Compare saved runs: memory exactly, time with an interval and a verdict.",
    "show": "Show a saved run again: its screen, statistics, histogram, timeline.",
    "explain": "Define a word or a metric of the output.",
    "config": "Print the effective settings, and where each comes from.",
    "ops": "List the ops: bound, what backward needs, what is held beside the checkpointer.",
    "backends": "List the array libraries, their devices, and what is missing.",
    "strategies": "List the checkpointing strategies.",
    "completion": "Print the completion script for bash, zsh or fish.",
}
"""Name -> short help. A command lives in the module of its name, as `command`."""

EPILOG = """\b
Examples:
  ckpt run                                        none against balanced, 8 layers of n = 1024
  ckpt run --strategy balanced --layers 8 --n 512 --json
  ckpt log --level full                           Burn's log of one backward pass

\b
Exit codes: 0 done; 1 failed while running; 2 wrong command line or
configuration; 3 a --fail-on condition holds; 4 a verdict is unclear, under
--strict; 5 a gradient is wrong; 124 --timeout; 129 hung up; 130 interrupted;
143 terminated (what is measured so far is printed)."""


class ClosedPipe(Exception):
    """Whoever reads stdout has had enough; not an OSError, which click would end with 1."""


@contextlib.contextmanager
def closed_pipe_told() -> Iterator[None]:
    """Inside click, which has an ending of its own for a BrokenPipeError: ours instead."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedPipe from error


class LazyGroup(click.Group):
    """Imports a command's module when the command is run, not for help or completion of names."""

    def make_context(self, *arguments: Any, **attributes: Any) -> click.Context:
        with closed_pipe_told():  # --help and --version print while the line is parsed
            return super().make_context(*arguments, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        with closed_pipe_told():
            result = super().invoke(ctx)
            sys.stdout.flush()
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UnknownNameError("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"ckptcli.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
    invoke_without_command=True,
)
@click.version_option(VERSION, "-V", "--version", prog_name="ckpt", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Profile gradient checkpointing: what is held, how high memory peaks, what is computed twice,
    what it costs, and whether the gradient is still right.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    open_standard_streams()
    let_go_of_cores()
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, with errors told on stderr."""
    try:
        code = root.main(arguments, prog_name="ckpt", standalone_mode=False)
    except CkptError as error:
        report_error(error.message, error.hint)
        return error.exit_code
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted", err=True)
        return INTERRUPTED
    except (ClosedPipe, BrokenPipeError):
        discard(sys.stdout)
        return DONE
    except MemoryError as error:
        told = f"out of memory: {error}" if str(error) else "out of memory"
        report_error(told, "use a smaller workload or fewer strategies")
        return FAILED
    except OSError as error:
        report_error(_failure_of(error), None)
        discard(sys.stdout)
        return FAILED
    return code if isinstance(code, int) else DONE


def _show(error: click.ClickException) -> None:
    """As click shows it, usage and all, but for what a terminal would act on."""
    shown = io.StringIO()
    error.show(shown)
    text = shown.getvalue().rstrip("\n")
    if isinstance(error, click.MissingParameter):  # no text of others, but lists with tabs
        text = text.replace(":\n\t", ": ").replace(",\n\t", ", ")
    say(text)


def _failure_of(error: OSError) -> str:
    """A file is named as what failed; without one it was a write to stdout."""
    if error.filename is None:
        return f"stdout cannot be written: {error.strerror or error}"
    return f"`{error.filename}`: {error.strerror}"


def report_error(message: str, hint: str | None) -> None:
    """`Error: ...` on stderr, and the hint on a line of its own."""
    say(f"Error: {visible(message)}")
    if hint:
        say(f"\nhint: {visible(hint)}")
