"""The rows of other engines as the list `peers` has them: for readers from before there were rows.

Nothing here is a figure of its own; the list is written and never read back.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.measure.fields import Bytes, Count, Positive, Seconds
from ckptcli.measure.row import Agreement, Passes, Row, Times
from ckptcli.measure.statistics import Ratio


@dataclass(frozen=True, slots=True)
class PeerMemory:
    """What the library holds, and its peak.

    Attributes:
        saved_bytes: Unique storages that it holds from forward to backward, without parameters,
            input and loss, bytes.
        saved_tensors: How many these are.
        peak_bytes: The peak, bytes; null if the library does not tell.
        compiled_temp_bytes: What the compiler planned for temporaries, bytes; null if nothing is
            compiled.
    """

    saved_bytes: Bytes
    saved_tensors: Count
    peak_bytes: Bytes | None
    compiled_temp_bytes: Bytes | None


@dataclass(frozen=True, slots=True)
class Peer:
    """A row of another engine; see `strategies`, which has the same and more.

    Attributes:
        engine: Name, as in `--engine`.
        strategy: Name, as on the command line.
        point: Where its program stands among several.
        library: Name and version of the library, for people.
        threads: Threads that it computes with; null if it does not tell.
        reason: Why there are no figures, for people; null if there are.
        memory: Its memory; null without figures.
        recomputed_by_op: Values computed again by op, a count each; null if not known.
        agreement: How far loss and gradients are from what they have to be.
        compile_s: Tracing and compiling, in no sample, seconds; null if nothing is compiled.
        forward_s: Forward passes; no samples where both phases are one program.
        backward_s: Backward passes; no samples where both phases are one program.
        total_s: Forward and backward together.
        ratio: Total time against the reference's; null without a sample of both.
        own_ratio: Total time against ckpt's under the same strategy; null without a sample of both.
        passes: The samples whole.
    """

    engine: str
    strategy: str
    library: str
    threads: Positive | None
    reason: str | None
    memory: PeerMemory | None
    recomputed_by_op: dict[str, Positive] | None
    agreement: Agreement | None
    compile_s: Seconds | None
    forward_s: Times
    backward_s: Times
    total_s: Times
    ratio: Ratio | None
    own_ratio: Ratio | None
    passes: Passes
    point: dict[str, float]


def peer_view(row: Row) -> Peer:
    """The row as an entry of `peers`."""
    return Peer(
        engine=row.engine,
        strategy=row.strategy,
        library=row.library,
        threads=row.threads,
        reason=row.reason,
        memory=_memory(row),
        recomputed_by_op=None if row.outcome is None else row.outcome.recomputed_by_op,
        agreement=row.agreement,
        compile_s=row.compile_s,
        forward_s=row.forward_s,
        backward_s=row.backward_s,
        total_s=row.total_s,
        ratio=None if row.ratios is None else row.ratios.get("total"),
        own_ratio=row.own_ratio,
        passes=row.passes,
        point=row.point,
    )


def _memory(row: Row) -> PeerMemory | None:
    known = row.memory
    if known is None:
        return None
    return PeerMemory(
        known.saved_bytes, known.saved_tensors, known.peak_bytes, known.compiled_temp_bytes
    )
