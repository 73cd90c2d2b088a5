"""Results as JSON on stdout: one object on several lines, or one object a line of several."""

from __future__ import annotations

import json

import click


def json_text(data: object) -> str:
    """One object, to be read."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def print_json(data: object) -> None:
    """The one object that a command prints."""
    click.echo(json_text(data), nl=False)


def print_json_line(data: object) -> None:
    """One of several objects, a line each: a program, a pass."""
    click.echo(json.dumps(data, allow_nan=False))
