"""`ckpt strategies`: the registry, a line each."""

from __future__ import annotations

import click

from ckptcli.checkpoint.strategies.registry import registry


@click.command("strategies")
def command() -> None:
    """List the checkpointing strategies that --strategy takes."""
    known = registry()
    width = max(map(len, known))
    for name, strategy in known.items():
        click.echo(f"{name:<{width}}  {strategy.summary}")
        if strategy.grammar:
            click.echo(f"{'':<{width}}  {strategy.grammar}")
