"""Completion of names in the shell, from a registry that is read when the shell asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(summaries: Callable[[], Mapping[str, str | None]]) -> Completer:
    """What click asks for completions; `summaries` gives name -> a line of help, or None."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [
            CompletionItem(name, help=summary)
            for name, summary in summaries().items()
            if name.startswith(incomplete)
        ]

    return complete
