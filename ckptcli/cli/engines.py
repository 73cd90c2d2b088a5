"""`--engine`: the libraries that a command compares with, imported when they are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.names import completing
from ckptcli.measure import OURS

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine


def _summaries() -> dict[str, str]:
    from ckptcli.peers.base import engines

    return {OURS: "ckpt's own", **{name: engine.summary for name, engine in engines().items()}}


def engine_option(function: Any) -> Any:
    """`--engine`."""
    return click.option(
        "--engine",
        "engine_names",
        multiple=True,
        metavar="NAME",
        shell_complete=completing(_summaries),
        help="Run every strategy in this library too, repeatable; a wrong name lists all.",
    )(function)


@contextmanager
def opened_engines(
    names: Sequence[str], threads: int | None
) -> Iterator[tuple[list[Engine], list[str]]]:
    """The engines, with this many threads inside, and warnings.

    Raises:
        UnknownNameError: no engine has one of the names.
        MissingLibraryError: the library of one is not installed.
    """
    if set(names) <= {OURS}:
        yield [], []
        return
    from ckptcli.peers.base import open_engines

    engines = open_engines(names)
    with ExitStack() as stack:
        notes = [stack.enter_context(engine.with_threads(threads)) for engine in engines]
        yield engines, list(dict.fromkeys(note for note in notes if note is not None))
