"""A strategy that ran out of memory, as lines for stderr."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure.record import Failure

SHOWN = 12


def failure_lines(failure: Failure) -> Iterator[str]:
    """What happened, and the largest storages that were live at that moment."""
    live = failure.live
    yield f"Error: {failure.label}: out of memory in {failure.phase}: {failure.message}"
    if not live.total_tensors:
        return
    storages = units.count(live.total_tensors, "storage")
    yield f"  live at that moment: {units.size(live.total_bytes)} in {storages}"
    for tensor in live.largest[:SHOWN]:
        node = "" if tensor.node is None else f"node {tensor.node} "
        op = f"({tensor.op}) " if tensor.op else ""
        shape = list(tensor.shape)
        yield f"  {units.size(tensor.bytes):>12}  {tensor.why}: {node}{op}{shape}"
    if live.total_tensors > SHOWN:
        yield f"  and {live.total_tensors - SHOWN} more"
