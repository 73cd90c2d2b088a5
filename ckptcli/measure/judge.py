"""One word on what a strategy did to memory, and why: the same rule for every engine.

A program that is compiled whole has a file of its own: what it holds is no figure there.

Invariant: `wrong` before `worse` before `effective` before `held only` before `no effect`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli import units
from ckptcli.measure import OURS
from ckptcli.measure.evidence import others_of, why_not_ours
from ckptcli.measure.judge_compiled import TOLERANCE, judge_compiled
from ckptcli.measure.memory import Memory
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Judgement, Row
from ckptcli.measure.trace import NodeFate

MOSTLY = 0.9
"""Of a peak, what leaves too little for any checkpoint to spare."""

NOTHING_HELD = "nothing to drop: backward needs no intermediate value"
_LARGER = "checkpoint larger blocks (-s remat:every=K, or --blocks CLASS)"
_BLOCKS = "checkpoint larger blocks: put layers into modules, each of which is one child"
_SMALLER_SHARE = "let it keep a smaller share of activations (-s compile:budget=0.5)"

Pair = tuple[int, int]
"""A figure of the row, and of what it is held against."""


def judge(row: Row, base: Row, record: RunRecord) -> Judgement | None:
    """The word on `row` against `base`; None where one of them has no figures."""
    now, before = row.memory, base.memory
    if now is None or before is None or row.outcome is None:
        return None
    compiled = judge_compiled(row, base)
    if is_wrong(row, base):
        reason = _wrong_reason(row, base, record)
        if compiled is not None and compiled.word != "effective":
            reason = f"{reason}; {compiled.reason}"
        return Judgement("wrong", reason)
    if compiled is not None:
        return compiled
    held, peak = _held(now, before), (now.peak_bytes or 0, before.peak_bytes or 0)
    if _is_more(*held) or _is_more(*peak):
        reason = _workspace_reason(now, before, held, peak) or _worse_reason(row, held, peak)
        return Judgement("worse", reason + _advice(row, now, record))
    if _is_less(*peak):
        return Judgement("effective", f"peak {units.change(*peak)}")
    if _is_less(*held):
        advice = _advice(row, now, record) if _most_is_held(now, before) else ""
        return Judgement("held only", _held_only_reason(now, held) + advice)
    advice = _advice(row, now, record) if before.saved_bytes else ""
    return Judgement("no effect", _no_effect_reason(row, base) + advice)


def _most_is_held(now: Memory, before: Memory) -> bool:
    """Whether most of what is held for backward is still held."""
    return 2 * now.saved_bytes > before.saved_bytes


def is_wrong(row: Row, base: Row) -> bool:
    """Whether loss or gradients are not what they have to be: by bits where both have them."""
    if row.agreement is not None:
        return not row.agreement.agrees
    own, other = row.outcome, base.outcome
    if own is None or other is None or own.grad_sha256 is None or other.grad_sha256 is None:
        return False
    return own.grad_sha256 != other.grad_sha256 and not own.grad_within_spread


def _wrong_reason(row: Row, base: Row, record: RunRecord) -> str:
    if row.agreement is None:
        return f"a gradient differs from that of `{base.strategy}`"
    beside = row.agreement.beside
    if beside == OURS:
        return f"loss or gradients differ from ckpt's: {why_not_ours(row, *others_of(row, record))}"
    return f"loss or gradients differ from those of `{beside}`"


def _held(now: Memory, before: Memory) -> Pair:
    """What is in use after forward; where one of both does not tell, what is held for backward."""
    if now.after_forward_bytes is None or before.after_forward_bytes is None:
        return now.saved_bytes, before.saved_bytes
    return now.after_forward_bytes, before.after_forward_bytes


def _is_more(now: int, before: int) -> bool:
    return now > before * (1.0 + TOLERANCE)


def _is_less(now: int, before: int) -> bool:
    return now < before * (1.0 - TOLERANCE)


def _workspace_reason(now: Memory, before: Memory, held: Pair, peak: Pair) -> str | None:
    """Of a module whose tensors take no more; None of any other."""
    tensors = (now.ledger_peak_bytes or 0, before.ledger_peak_bytes or 0)
    is_module = now.peak_live is not None and now.peak_live.module != ""
    if not is_module or _is_more(*held) or _is_more(*tensors):
        return None
    workspace = units.change(now.workspace_bytes or 0, before.workspace_bytes or 0)
    return (
        f"peaks {units.change(*peak)} by its workspace, {workspace}: among it is the random state "
        "that each checkpoint of PyTorch keeps"
    )


def _worse_reason(row: Row, held: Pair, peak: Pair) -> str:
    parts = []
    if _is_more(*held):
        parts.append(f"has {units.change(*held)} in use after forward")
    if _is_more(*peak):
        parts.append(f"peaks {units.change(*peak)}")
    why = (
        "a strategy that recomputes keeps the inputs of what it recomputes"
        if row.compile_s is None
        else "the compiler holds other values than the ops do one by one"
    )
    return f"{' and '.join(parts)}: {why}"


def _held_only_reason(memory: Memory, held: Pair) -> str:
    text = f"has {units.change(*held)} in use after forward, but the peak"
    if memory.peak_bytes is None:
        return f"{text} is not known"
    if memory.peak_live is None:
        return f"{text} stays at {units.size(memory.peak_bytes)}"
    largest = sorted(memory.peak_live.bytes_by_why.items(), key=lambda item: -item[1])[:3]
    named = ", ".join(f"{why} {units.size(size_bytes)}" for why, size_bytes in largest)
    return f"{text} stays at {units.size(memory.peak_bytes)}, set by {named}"


def _no_effect_reason(row: Row, base: Row) -> str:
    if row.trace is None or not row.trace.nodes:
        return _no_effect_elsewhere(row, base)
    constants = [node for node in row.trace.nodes if node.held_for_constants]
    if constants:
        return f"held, since a parent is a constant: {_named(constants)}"
    if row.recomputed_nodes:
        return "what is recomputed is as large as what has to be kept for it"
    if not any(node.fate == "saved" for node in row.trace.nodes):
        return NOTHING_HELD
    return "nothing to drop: no value that backward needs can be recomputed under this strategy"


def _no_effect_elsewhere(row: Row, base: Row) -> str:
    """Of a library that tells of no node."""
    if row.memory is None or base.memory is None or not base.memory.saved_bytes:
        return NOTHING_HELD
    now, before = row.memory.saved_bytes, base.memory.saved_bytes
    if _is_less(now, before):
        return f"what is held for backward, {units.change(now, before)}, is small beside the rest"
    if row.compile_s is not None:
        return "the compiled program holds as much and peaks as high"
    return "the inputs that checkpoints keep are as large as what they spare"


def all_fixed(memory: Memory) -> str | None:
    """That no checkpoint can help, where nearly all of a module's peak is what none changes."""
    live = memory.peak_live
    if live is None or not live.module or live.fixed_bytes < MOSTLY * live.total_bytes:
        return None
    return (
        f"no checkpoint can help: {units.part(live.fixed_bytes, live.total_bytes)} are parameters"
        + (
            ", their gradients and the optimizer's state"
            if "optimizer" in live.bytes_by_why
            else " and their gradients"
        )
    )


def _advice(row: Row, now: Memory, record: RunRecord) -> str:
    """What to do with a module of the user's own where a row spares nothing; nothing where nothing
    can be done, which its reading says.
    """
    if not record.children or all_fixed(now) is not None:
        return ""
    if row.compile_s is not None:
        return f"; {_SMALLER_SHARE}"
    return f"; {_LARGER if record.workload.get('has_caller') else _BLOCKS}"


def _named(nodes: Sequence[NodeFate], most: int = 5) -> str:
    shown = ", ".join(f"node {node.node} ({node.op})" for node in nodes[:most])
    return shown if len(nodes) <= most else f"{shown} and {len(nodes) - most} more"
