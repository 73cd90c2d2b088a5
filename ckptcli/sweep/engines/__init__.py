"""What measures points: one engine a file, a class `ENGINE` that its name leads to.

None of them schedules: each hands the points to what exists.
"""

from __future__ import annotations

import importlib

from ckptcli.sweep.engines.base import Engine


def engine_class(name: str) -> type[Engine]:
    """The engine of that name; its library is not loaded yet.

    The name is one of the choices of `--on`.
    """
    found: type[Engine] = importlib.import_module(f"{__name__}.{name}").ENGINE
    return found
