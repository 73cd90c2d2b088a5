"""`ckpt explain`: what a word of the output means."""

from __future__ import annotations

import sys
import textwrap

import click

from ckptcli.cli.names import completing, glossary
from ckptcli.cli.streams import screen_width


@click.command("explain")
@click.argument("words", metavar="[TERM]", nargs=-1, shell_complete=completing(glossary))
def command(words: tuple[str, ...]) -> None:
    """Define TERM, a word or a JSON key of the output; without it, list all.

    A term of several words needs no quotes: ckpt explain gradient of a parameter.
    """
    from ckptcli.checkpoint.strategies.registry import registry
    from ckptcli.report.glossary import GLOSSARY, define, defined_terms

    if words:
        name = " ".join(words)
        strategies = {key: strategy.summary for key, strategy in registry().items()}
        if name in strategies and name not in GLOSSARY:
            click.echo(_entry(name, f"Strategy: {strategies[name]}."))
        else:
            click.echo(_entry(*define(name, strategies)))
        return
    for term, definition in defined_terms().items():
        click.echo(_entry(term, definition))


def _entry(term: str, definition: str) -> str:
    from ckptcli.report.glossary import other_names

    names = other_names(term)
    head = f"{term} ({', '.join(names)})" if names else term
    body = textwrap.fill(
        definition,
        screen_width(sys.stdout),
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
    return f"{head}\n{body}"
