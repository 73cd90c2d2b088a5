"""`ckpt ops`: the op table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.json_output import print_json
from ckptcli.errors import UnknownNameError

if TYPE_CHECKING:
    from ckptcli.autodiff.describe import OpDescription
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.list import ListOptions

SCHEMA = "ckpt.ops/1"
COMPOSED = "composed"
UNDER_BALANCED = {
    "memory": "computed again, unless an operand is a constant",
    "compute": "held when it is needed",
    "ambiguous": "held when it is needed",
    "leaf": "held when it is needed",
}


@options_command("ops", click.Argument(["name"], required=False))
def command(options: ListOptions, line: Line, name: str | None) -> None:
    """List the ops with their bound, what their backward step needs and what they hold beside.

    With NAME, one op in detail.
    """
    from ckptcli.autodiff.describe import descriptions

    known = descriptions()
    if name is not None and name not in known:
        raise UnknownNameError("op", name, known)
    chosen = list(known.values()) if name is None else [known[name]]
    if options.data.as_json:
        print_json({"schema": SCHEMA, "ops": [asdict(op) for op in chosen]})
    elif name is None:
        _print_table(chosen)
    else:
        _print_one(chosen[0])


def _print_table(ops: Iterable[OpDescription]) -> None:
    rows = [("op", "bound", "backward needs", "held beside the checkpointer")]
    for op in ops:
        rows.append((op.name, op.bound or COMPOSED, ", ".join(op.needs) or "-", op.keeps or "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        click.echo("  ".join([*cells, row[3]]).rstrip())


def _print_one(op: OpDescription) -> None:
    click.echo(op.call)
    if op.summary:
        click.echo(op.summary)
    if op.differs:
        click.echo(op.differs)
    click.echo("")
    if op.bound is None:
        click.echo("composed: each op that it is made of is a node with a bound of its own")
        return
    click.echo(f"bound: {op.bound}{', a view that moves no bytes' if op.is_view else ''}")
    click.echo(f"under balanced: {UNDER_BALANCED[op.bound]}")
    click.echo(f"backward needs: {', '.join(op.needs) or 'no value'}")
    click.echo(f"held beside the checkpointer: {op.keeps or 'shapes and scalars at most'}")
