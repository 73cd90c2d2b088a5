"""What autograd holds for a PyTorch module of the user's own, for the eye."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli import units
from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.report.screen import Screen


def render_module_saved(title: str, saved: Sequence[ModuleSaved], screen: Screen) -> str:
    """The list, largest first, with its total."""
    total_bytes = sum(storage.bytes for storage in saved)
    head = f"{title}: {units.count(len(saved), 'tensor')}, {units.size(total_bytes)} held"
    if not saved:
        return screen.render(head)
    table = screen.table()
    table.add_column("size", justify="right", no_wrap=True)
    for name in ("module", "shape", "held by"):
        table.add_column(name, overflow="fold")
    for storage in saved:
        shape = f"{list(storage.shape)} {storage.dtype}"
        table.add_row(units.size(storage.bytes), storage.module, shape, ", ".join(storage.ops))
    return screen.render(head, table)
