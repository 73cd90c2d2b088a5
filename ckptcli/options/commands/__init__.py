"""The options of each command: groups, with what a command says otherwise of them.

A command's file is imported when the command is, so that a help text makes no other's options.
"""

from __future__ import annotations

import importlib

from ckptcli.options.group import Options

COMMANDS = {
    "sweep": "ckptcli.options.commands.sweep:SweepOptions",
    "fits": "ckptcli.options.commands.fits:FitsOptions",
    "run": "ckptcli.options.commands.run:RunOptions",
    "log": "ckptcli.options.commands.log:LogOptions",
    "check": "ckptcli.options.commands.check:CheckOptions",
    "saved": "ckptcli.options.commands.saved:SavedOptions",
    "compare": "ckptcli.options.commands.compare:CompareOptions",
    "show": "ckptcli.options.commands.show:ShowOptions",
    "plan": "ckptcli.options.commands.plan:PlanOptions",
    "config": "ckptcli.options.commands.run:RunOptions",
    "ops": "ckptcli.options.commands.list:ListOptions",
    "backends": "ckptcli.options.commands.list:ListOptions",
}
"""Every command with options, and the place of their class."""


def options_class(command: str) -> type[Options]:
    """The class of a command's options."""
    module, _, name = COMMANDS[command].partition(":")
    found: type[Options] = getattr(importlib.import_module(module), name)
    return found


def options_classes() -> list[type[Options]]:
    """Those of all commands."""
    return [options_class(command) for command in COMMANDS]
