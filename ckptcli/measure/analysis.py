"""From measured samples to figures: estimates, ratios, and one word on each strategy.

A record is analysed once, when it is made or read back; reports compute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ckptcli import units
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import PHASES, Judgement, NodeFate, RunRecord, StrategyRecord
from ckptcli.measure.statistics import Estimate, Ratio, estimate, paired_ratio

TOLERANCE = 0.02
"""A memory figure within this share of the reference's counts as unchanged."""

_NOTHING_HELD = "nothing to drop: backward needs no intermediate value"


def analysed(record: RunRecord) -> RunRecord:
    """The record with every derived figure filled in."""
    reference = record.reference
    timed_peers = [peer for peer in record.peers if peer.reason is None]
    comparisons = max(1, len(record.strategies) - 1 + len(timed_peers))
    strategies = [
        _analysed_strategy(strategy, reference, record.threshold, comparisons)
        for strategy in record.strategies
    ]
    peers = [_analysed_peer(peer, record, comparisons) for peer in record.peers]
    return replace(record, strategies=tuple(strategies), peers=tuple(peers))


def _analysed_peer(peer: PeerRecord, record: RunRecord, comparisons: int) -> PeerRecord:
    own = next((s for s in record.strategies if s.strategy == peer.strategy), None)
    return replace(
        peer,
        times=_peer_times(peer),
        ratio=_total_ratio(peer, record.reference, record.threshold, comparisons),
        own_ratio=_total_ratio(peer, own, record.threshold, comparisons),
    )


def analysed_rows(rows: Sequence[PeerRecord], threshold: float) -> tuple[PeerRecord, ...]:
    """Rows without a run of ckpt's beside them: `ratio` is to the first."""
    first, *others = (replace(row, times=_peer_times(row)) for row in rows)
    comparisons = max(1, sum(row.reason is None for row in others))
    return (
        first,
        *(replace(r, ratio=_total_ratio(r, first, threshold, comparisons)) for r in others),
    )


def judged_rows(rows: Sequence[PeerRecord], advice: str) -> dict[str, Judgement]:
    """One word on each strategy but the first, which the others are held against, by its name.

    The words are those of `judge`. A row without figures has none; `advice` is what to do where
    checkpoints spare nothing.
    """
    first, *others = rows
    judged = ((row.strategy, _judge_row(row, first, advice)) for row in others)
    return {name: judgement for name, judgement in judged if judgement is not None}


def _judge_row(row: PeerRecord, reference: PeerRecord, advice: str) -> Judgement | None:
    now, before = row.memory, reference.memory
    if now is None or before is None or row.agreement is None:
        return None
    if not row.agreement.agrees:
        return Judgement("wrong", f"loss or gradients differ from those of `{reference.strategy}`")
    held = (now.saved_bytes, before.saved_bytes)
    peak = (now.peak_bytes or 0, before.peak_bytes or 0)
    if _is_more(*held) or _is_more(*peak):
        return Judgement("worse", f"{_worse_reason(held, peak)}; {advice}")
    if _is_less(*peak):
        return Judgement("effective", f"peak {units.change(*peak)}")
    if _is_less(*held):
        stays = f"but the peak stays at {units.size(now.peak_bytes)}"
        return Judgement("held only", f"holds {units.change(*held)} after forward, {stays}")
    if not before.saved_bytes:
        return Judgement("no effect", _NOTHING_HELD)
    reason = "the inputs that checkpoints keep are as large as what they spare"
    return Judgement("no effect", f"{reason}; {advice}")


def _peer_times(peer: PeerRecord) -> dict[str, Estimate] | None:
    return {p: estimate(known) for p in PHASES if (known := peer.seconds(p))} or None


def _total_ratio(
    peer: PeerRecord, base: StrategyRecord | PeerRecord | None, threshold: float, comparisons: int
) -> Ratio | None:
    if base is None or not base.samples or not peer.samples:
        return None
    return paired_ratio(
        peer.seconds("total"),
        base.seconds("total"),
        threshold=threshold,
        comparisons=comparisons,
    )


def _analysed_strategy(
    record: StrategyRecord, reference: StrategyRecord | None, threshold: float, comparisons: int
) -> StrategyRecord:
    times = {phase: estimate(record.seconds(phase)) for phase in PHASES} if record.samples else None
    if reference is None or record is reference:
        return replace(record, times=times)
    ratios = {
        phase: paired_ratio(
            record.seconds(phase),
            reference.seconds(phase),
            threshold=threshold,
            comparisons=comparisons,
        )
        for phase in PHASES
        if record.samples and reference.samples
    }
    return replace(record, times=times, ratios=ratios or None, judgement=judge(record, reference))


def judge(record: StrategyRecord, reference: StrategyRecord) -> Judgement:
    """One word on what the strategy did to memory, in order of precedence, and why.

    `wrong`, `worse`, `effective`, `held only`, `no effect`.
    """
    same_bits = record.outcome.grad_sha256 == reference.outcome.grad_sha256
    if not (same_bits or record.outcome.grad_within_spread):
        return Judgement("wrong", f"a gradient differs from that of `{reference.strategy}`")
    held = (record.memory.after_forward_bytes, reference.memory.after_forward_bytes)
    peak = (record.memory.ledger_peak_bytes, reference.memory.ledger_peak_bytes)
    if _is_more(*held) or _is_more(*peak):
        return Judgement("worse", _worse_reason(held, peak))
    if _is_less(*peak):
        return Judgement("effective", f"peak {units.change(*peak)}")
    if _is_less(*held):
        return Judgement("held only", _held_only_reason(record, held))
    return Judgement("no effect", _no_effect_reason(record))


def _is_more(now: int, before: int) -> bool:
    return now > before * (1.0 + TOLERANCE)


def _is_less(now: int, before: int) -> bool:
    return now < before * (1.0 - TOLERANCE)


def _worse_reason(held: tuple[int, int], peak: tuple[int, int]) -> str:
    parts = []
    if _is_more(*held):
        parts.append(f"has {units.change(*held)} in use after forward")
    if _is_more(*peak):
        parts.append(f"peaks {units.change(*peak)}")
    return (
        " and ".join(parts) + ": a strategy that recomputes keeps the inputs of what it recomputes"
    )


def _held_only_reason(record: StrategyRecord, held: tuple[int, int]) -> str:
    by_why = record.memory.peak_live.bytes_by_why
    largest = sorted(by_why.items(), key=lambda item: -item[1])[:3]
    named = ", ".join(f"{why} {units.size(size_bytes)}" for why, size_bytes in largest)
    return (
        f"has {units.change(*held)} in use after forward, but the peak of backward stays at "
        f"{units.size(record.memory.ledger_peak_bytes)}, set by {named}"
    )


def _no_effect_reason(record: StrategyRecord) -> str:
    constants = [node for node in record.trace.nodes if node.held_for_constants]
    if constants:
        return f"held, since a parent is a constant: {_named(constants)}"
    if record.outcome.recomputed_nodes:
        return "what is recomputed is as large as what has to be kept for it"
    if not any(node.fate == "saved" for node in record.trace.nodes):
        return _NOTHING_HELD
    return "nothing to drop: no value that backward needs can be recomputed under this strategy"


def _named(nodes: Sequence[NodeFate], most: int = 5) -> str:
    shown = ", ".join(f"node {node.node} ({node.op})" for node in nodes[:most])
    return shown if len(nodes) <= most else f"{shown} and {len(nodes) - most} more"
