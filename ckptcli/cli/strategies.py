"""`ckpt strategies`: the registry, a line each."""

from __future__ import annotations

import click


@click.command("strategies")
def command() -> None:
    """List the checkpointing strategies that --strategy takes."""
    from ckptcli.checkpoint.strategies.registry import registry

    known = registry()
    width = max(map(len, known))
    for name, strategy in known.items():
        click.echo(f"{name:<{width}}  {strategy.summary}")
        if strategy.grammar:
            click.echo(f"{'':<{width}}  {strategy.grammar}")
