"""What of a program in JAX can be turns of one `lax.scan`: equal parts in a row.

One body stands for all turns, so that parts are alike only if the same operations do for both and
the shape of what is handed on stays what it is.

Source: `jax.lax.scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ckptcli.peers.base import NoPeer

Body = Callable[[Any, Any], tuple[Any, Any]]
"""From what is handed on and this turn's own input to what is handed on and this turn's output."""


def in_rows(kinds: Sequence[object | None]) -> list[tuple[int, int]]:
    """First part and number of parts of each row of equal ones; None is like no other."""
    rows: list[tuple[int, int]] = []
    for place, kind in enumerate(kinds):
        if rows and kind is not None and kind == kinds[place - 1]:
            first, count = rows[-1]
            rows[-1] = (first, count + 1)
        else:
            rows.append((place, 1))
    return rows


def repeated(body: Body, turns: int) -> Body:
    """`body` as a loop, whose inputs and outputs have an axis of turns; itself for one turn."""
    if turns == 1:
        return body
    import jax

    return lambda carried, inputs: jax.lax.scan(body, carried, inputs, length=turns)


def check_has_loop(turns: Sequence[int]) -> None:
    """Refuse a program of which no part runs more than once.

    Raises:
        NoPeer: such a program; another engine runs it under its own name.
    """
    if max(turns, default=0) < 2:
        raise NoPeer("no two layers in a row are alike, so that there is no loop: see `jax`")
