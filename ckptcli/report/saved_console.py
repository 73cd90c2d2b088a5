"""What is held after forward, for the eye: a table a strategy, largest first, with totals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ckptcli import units
from ckptcli.measure.saved import SavedTensor
from ckptcli.report.console import Screen


def render_saved(strategy: str, saved: Sequence[SavedTensor], screen: Screen) -> str:
    """The table of one strategy, ready to print."""
    total_bytes = sum(tensor.bytes for tensor in saved)
    title = f"{strategy}: {units.count(len(saved), 'tensor')}, {units.size(total_bytes)} held"
    if not saved:
        return screen.render(title)
    return screen.render(title, _table(saved, screen))


def _table(saved: Sequence[SavedTensor], screen: Screen) -> Table:
    table = screen.table()
    for name in ("node", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("op", no_wrap=True)
    for name in ("shape", "made at", "freed after", "why"):
        table.add_column(name, overflow="fold")
    for tensor in saved:
        shape = f"{list(tensor.shape)} {tensor.dtype}"
        table.add_row(
            str(tensor.node),
            units.size(tensor.bytes),
            tensor.op or "",
            shape,
            tensor.source,
            tensor.freed_at or "never",
            tensor.why,
        )
    return table
