"""The lines of Burn's autodiff log.

Invariant: a line is a function of one event and the level alone, so that the log of a pass is the
same wherever it is written.

Source: Burn 0.22.1, `burn-autodiff/src/checkpoint/base.rs`, which has two log calls and no more.
"""

from __future__ import annotations

from ckptcli.events import Event, Level, Retrieved, Visited


def burn_line(event: Event, level: Level) -> str | None:
    """The line that Burn logs for `event` at `level`, without its newline; None if it logs none.

    Burn has no call at medium: it logs the same as basic.
    """
    if level == Level.DISABLED:
        return None
    if isinstance(event, Retrieved):
        return (
            f"retrieve_node_output NodeId {{ value: {event.node_id} }}: "
            f"{event.n_nodes} node(s) to compute"
        )
    if isinstance(event, Visited) and level == Level.FULL:
        return f"execute_retro_forward NodeId {{ value: {event.node_id} }}"
    return None
