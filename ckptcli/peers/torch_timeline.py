"""The pass of a PyTorch module as it went: what was live after each storage that was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.measure.trace import TimelinePoint, Trace
from ckptcli.peers.torch_account import Birth

MOST_POINTS = 2000
"""As of every list in a record; of a longer pass, of neighbours the one that is highest."""


def moments(history: Sequence[Birth]) -> Iterator[tuple[Birth, int]]:
    """Each storage that an op made, in order, and all that was live then; bytes."""
    changes = [(birth.born, birth.size_bytes, birth) for birth in history]
    changes += [(b.died, -b.size_bytes, b) for b in history if b.died is not None]
    live_bytes = 0
    for _, change_bytes, birth in sorted(changes, key=lambda change: change[0]):
        live_bytes += change_bytes
        if change_bytes > 0 and birth.op:
            yield birth, live_bytes


def trace_of(history: Sequence[Birth]) -> Trace:
    """The pass in at most `MOST_POINTS` points; nodes and what retrieves them PyTorch has not."""
    found = list(moments(history))
    begin_s = found[0][0].born_s if found else 0.0
    ends_s = [birth.born_s - begin_s for birth, _ in found[1:]]
    ends_s += [birth.born_s - begin_s for birth, _ in found[-1:]]
    points = [
        TimelinePoint(
            phase=birth.phase,
            node=None,
            op=birth.op,
            high_bytes=live_bytes,
            end_bytes=live_bytes,
            start_s=birth.born_s - begin_s,
            end_s=end_s,
            module=birth.path,
        )
        for (birth, live_bytes), end_s in zip(found, ends_s)
    ]
    stride = max(1, -(-len(points) // MOST_POINTS))
    kept = [
        max(points[start : start + stride], key=lambda point: point.high_bytes)
        for start in range(0, len(points), stride)
    ]
    return Trace(tuple(kept), (), (), (), cut=stride > 1, ops_per_point=stride)
