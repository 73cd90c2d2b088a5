"""A compiled program run once in a process that does nothing else: what that takes.

In the process that traced and compiled it, freed memory and other rows' arrays stand in the way of
such a figure. The program goes to the child compiled, with its arguments.

Invariant: whatever becomes of the child, its row stays; the figure is then not known, and the row
says why. A child is a session of its own and ends with its parent.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import Any

from ckptcli import units
from ckptcli.measure.compiled import Compiled, Plan
from ckptcli.measure.machine import available_bytes
from ckptcli.peers.base import NoPeer, Packed, TimedNetwork
from ckptcli.profiling.parent import child_command, ending_pipe

PATIENCE_S = 300.0
"""How long a child may take that runs a program once."""


COPIES = 4
"""Of the arguments, while they go to a child: written down, sent, read, and as they are used."""


def in_fresh_process(network: TimedNetwork, compiled: Compiled) -> Compiled:
    """`compiled` with the figures of a fresh process, or with the reason why there are none."""
    try:
        if (plan := compiled.plan) is not None:
            _check_room(plan)
        packed = network.packed()
    except NoPeer as reason:
        return replace(compiled, why_no_process=str(reason))
    if packed is None:
        return compiled
    figures = _figures(packed)
    if isinstance(figures, str):
        return replace(compiled, why_no_process=figures)
    return replace(
        compiled,
        fresh_process_bytes=figures.get("fresh_process_bytes"),
        device_peak_bytes=figures.get("device_peak_bytes"),
    )


def _check_room(plan: Plan) -> None:
    """Refuse a second process whose program does not fit beside this one.

    Raises:
        NoPeer: it does not; says what it needs and what there is.
    """
    needed_bytes = COPIES * plan.argument_bytes + plan.output_bytes + plan.temp_bytes
    free_bytes = available_bytes()
    if free_bytes is not None and needed_bytes > free_bytes:
        raise NoPeer(
            f"a second process would need {units.size(needed_bytes)}, and "
            f"{units.size(free_bytes)} of memory are free"
        )


def _figures(packed: Packed) -> dict[str, Any] | str:
    """What the child measured, or why it did not."""
    with ending_pipe() as pipe:
        try:
            done = subprocess.run(
                child_command([], pipe, packed.module),
                input=packed.payload,
                capture_output=True,
                timeout=PATIENCE_S,
                pass_fds=() if pipe is None else (pipe,),
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the process that was to run it did not: {error}"
    if done.returncode:
        return (
            f"the process that was to run it ended with {done.returncode}{_complaint(done.stderr)}"
        )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _complaint(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
