"""`--engine`: the libraries that a command compares with, imported when they are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ckptcli.measure import OURS

if TYPE_CHECKING:
    from ckptcli.peers.base import Engine


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
