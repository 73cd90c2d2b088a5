"""What the figures of a row say, in sentences; the first is the answer.

Screen, Markdown and page show the same sentences. Nothing is said twice: what the answer or the
table has is in no sentence below them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure import OURS
from ckptcli.measure.judge import all_fixed
from ckptcli.measure.memory import AllocatorPeak, Holder, Memory, PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Agreement, Row
from ckptcli.measure.statistics import Estimate, Ratio
from ckptcli.report.charts import during
from ckptcli.report.compiled_table import compiled_readings
from ckptcli.report.run_table import (
    by_op,
    gradients_word,
    ratio_interval,
    scale_of,
    time_verdict,
    total_ratio,
    verdict,
)
from ckptcli.units import TimeScale

SHOWN_SHARE = 0.001
"""Of what is live, what makes up less than this is left out of its sentence."""

HOLDER_SHARE = 0.01
"""Of the peak, what holds less than this is in the list alone."""

_LAST_DIGIT = 0.005
"""Ratios are shown with two decimals: what is closer is the same to a reader."""

SAID_BY_THE_ANSWER = frozenset({"effective"})
"""Verdicts whose reason is the change of the peak."""


def answer(row: Row, record: RunRecord) -> str:
    """One line: verdict, peak, held, time, gradient; no word where there is nothing to judge by."""
    word = verdict(row, record)
    if word == units.UNKNOWN and row.reason is None:
        return figures(row, record)
    return f"{word}: {figures(row, record)}"


def figures(row: Row, record: RunRecord) -> str:
    """The answer without its word: peak, held, time, gradient; or why there are none."""
    if row.reason is not None:
        return row.reason
    base = record.base_of(row)
    parts = _own_figures(row, record) if base is None else _figures_beside(row, base, record)
    return ", ".join(parts)


def _own_figures(row: Row, record: RunRecord) -> Iterator[str]:
    yield f"peak {units.size(row.peak_bytes)}"
    yield f"holds {units.size(row.saved_bytes)} for backward"
    if row.median_s("total") is not None:
        yield f"takes {units.duration(row.median_s('total'), _scale(row))}"
    ratio = total_ratio(row)
    if ratio is not None:
        whose, word = _reference_name(row, record), time_verdict(row, record)
        yield f"{units.ratio(ratio.median)} that of {whose} ({word})"


def _figures_beside(row: Row, base: Row, record: RunRecord) -> Iterator[str]:
    yield f"peak {_change(row.peak_bytes, base.peak_bytes)}"
    yield f"holds {_change(row.saved_bytes, base.saved_bytes)} for backward"
    ratios = row.ratios if base is record.reference_of(row) else row.engine_ratios
    ratio = None if ratios is None else ratios.get("total")
    if ratio is not None:
        apart = "" if medians_apart(row, base, ratio) is None else " round by round"
        of = "" if base is record.reference_of(row) else f" of `{base.name}`"
        yield f"takes {units.ratio(ratio.median)} the time{of}{apart} ({ratio.verdict})"
    yield f"gradients {gradients_word(row, base)}"


def medians_apart(row: Row, base: Row, ratio: Ratio) -> float | None:
    """The ratio of the two medians, where it lies outside what the rounds say one by one: a busy
    machine disturbs some rounds whole, which the pairs within a round do not see.
    """
    now_s, before_s = row.median_s("total"), base.median_s("total")
    if now_s is None or not before_s:
        return None
    apart = now_s / before_s
    is_told = ratio.low * (1.0 - _LAST_DIGIT) <= apart <= ratio.high * (1.0 + _LAST_DIGIT)
    return None if is_told else apart


def _reference_name(row: Row, record: RunRecord) -> str:
    """With whose it is where several engines have one of the name."""
    reference = record.reference_of(row)
    if reference is None:
        return "the reference"
    engines = {row.engine for row in record.rows}
    return f"ckpt's {reference.strategy}" if engines > {OURS} else record.name_of(reference)


def _change(now_bytes: int | None, before_bytes: int | None) -> str:
    if now_bytes is None or before_bytes is None:
        return units.size(now_bytes)
    return units.change(now_bytes, before_bytes)


def title(row: Row, record: RunRecord) -> str:
    """The row's name; beside rows of other engines its library and threads too."""
    name = record.label(row)
    return name if row.engine == OURS or name == row.strategy else f"{name} ({device(row)})"


def device(row: Row) -> str:
    """Where it computes: the device line of ckpt's engine, library and threads of another."""
    if row.engine == OURS:
        return row.device
    threads = "" if row.threads is None else f", {units.threads(row.threads)}"
    return f"{row.library}{threads}"


def why(row: Row) -> str | None:
    """Why the row got its verdict, where the answer does not say it."""
    judgement = row.judgement
    if judgement is None or judgement.word in SAID_BY_THE_ANSWER:
        return None
    return judgement.reason


def readings(row: Row, record: RunRecord) -> Iterator[str]:
    """What the figures say beside answer and table; nothing of a row that has none."""
    memory = row.memory
    if row.reason is not None or memory is None:
        return
    if row.counterpart is not None:
        yield row.counterpart
    yield from _memory_readings(memory)
    yield from _fixed_reading(row, record)
    if row.compiled is not None:
        yield from compiled_readings(row.compiled)
    is_grouped = record.children and record.base_of(row) is not None and row.counterpart is None
    if row.regions or is_grouped:
        yield _regions(row, record)
    yield from _recomputation(row)
    yield from _time_readings(row, record)
    yield from _engine_readings(row, record)


def _fixed_reading(row: Row, record: RunRecord) -> Iterator[str]:
    """What checkpoints cannot change, where that is nearly all and none of them had an effect."""
    is_plain = record.base_of(row) is None
    words = [other.judgement.word for other in record.rows if other.judgement is not None]
    if is_plain and row.memory is not None and "effective" not in words:
        text = all_fixed(row.memory)
        if text is not None:
            yield text


def _memory_readings(memory: Memory) -> Iterator[str]:
    if memory.peak_live is not None:
        yield peak_reading(memory)
        yield from map(holder_reading, _large_holders(memory.peak_live))
    if memory.offloaded_bytes:
        yield f"holds {units.size(memory.offloaded_bytes)} more on the host"
    if memory.process_peak_bytes and memory.compiled_peak_bytes is None:
        rise = units.size(memory.process_peak_bytes)
        yield f"the resident memory of the process rose by {rise} in such a pass"
    if memory.allocator_backward is not None:
        yield allocator_text(memory.allocator_backward)
    forward, backward = memory.allocator_after_forward, memory.allocator_after_backward
    if forward is not None and backward is not None:
        yield (
            f"the allocator keeps no peak: it has {units.size(forward.in_use_bytes)} in use after "
            f"forward and {units.size(backward.in_use_bytes)} after backward, of "
            f"{units.size(backward.driver_bytes)} from the driver"
        )


def peak_reading(memory: Memory) -> str:
    """What sets the peak, and where the other phase stands."""
    assert memory.peak_live is not None
    parts = ", ".join(
        f"{why} {units.size(size_bytes)}"
        for why, size_bytes in sorted(
            memory.peak_live.bytes_by_why.items(), key=lambda item: -item[1]
        )
        if size_bytes >= SHOWN_SHARE * memory.peak_live.total_bytes
    )
    rest = f"{_workspace(memory)}; {units.size(memory.after_backward_bytes)} in use after backward"
    backward = units.size(memory.ledger_peak_backward_bytes)
    forward = units.size(memory.ledger_peak_forward_bytes)
    if not memory.peak_live.module:
        return f"at most {backward} live in backward ({parts}), {forward} in forward; {rest}"
    highest = units.size(memory.peak_live.total_bytes)
    at = {"forward": "forward", "step": "step"}.get(memory.peak_live.phase, "backward")
    known = {"forward": forward, "backward": backward}
    others = ", ".join(f"{size} in {phase}" for phase, size in known.items() if phase != at)
    when = during(memory.peak_live.phase, memory.peak_live.module)
    return f"at most {highest} live {when} ({parts}), {others}; {rest}"


def _large_holders(live: PeakLive) -> list[Holder]:
    return [held for held in live.holders if held.bytes >= HOLDER_SHARE * live.total_bytes]


def holder_reading(held: Holder) -> str:
    """What holds some of the peak that neither a block nor a step of backward needs."""
    name = f"`{held.name}` ({held.kind})" if held.role != "output" else "the output"
    if held.more_bytes is not None and held.more_bytes > 0:
        more = f"{units.size(held.more_bytes)} more at the peak: {name}, {_role(held)}"
        return f"{more}; `config.use_cache = False` spares it"
    return f"{units.size(held.bytes)} of the peak are held by {name}, {_role(held)}"


def _role(held: Holder) -> str:
    every = held.checkpoints == held.all_checkpoints
    blocks = (
        "every checkpointed block"
        if every
        else f"{held.checkpoints} of {held.all_checkpoints} checkpointed blocks"
    )
    if held.role == "closure" and not held.checkpoints:
        return f"in a closure of `{held.kind}`"
    return {
        "argument": f"an argument of {blocks}",
        "closure": f"in the closure of {blocks}",
        "output": "which is kept until the backward pass is done",
        "attribute": "an attribute of the module",
        "global": "a variable of the file",
    }[held.role]


def _workspace(memory: Memory) -> str:
    if memory.workspace_bytes is None:
        return f"workspace of kernels {units.UNKNOWN}"
    phases = [memory.peak_backward_bytes, memory.peak_forward_bytes]
    live = memory.peak_live
    if live is not None and live.module and live.phase == "forward":
        phases.reverse()  # as the sentence names them
    return f"with the workspace of kernels {' and '.join(map(units.size, phases))}"


def allocator_text(peak: AllocatorPeak) -> str:
    """What the device's allocator tells of a phase."""
    return (
        f"the allocator's peak: requested {units.size(peak.requested_bytes)}, allocated "
        f"{units.size(peak.allocated_bytes)}, reserved {units.size(peak.reserved_bytes)}"
        f"{_unused(peak)}"
    )


def _unused(peak: AllocatorPeak) -> str:
    """What the allocator took and gave to nobody: fragments, and blocks that it keeps."""
    if peak.allocated_bytes is None or peak.reserved_bytes is None:
        return ""
    unused_bytes = peak.reserved_bytes - peak.allocated_bytes
    return f", {units.size(unused_bytes)} of it in no block" if unused_bytes > 0 else ""


def _regions(row: Row, record: RunRecord) -> str:
    """`8 regions of 3 blocks`, `2 regions of 4 blocks and 1 region of 3 blocks`."""
    sizes = Counter(sum(path in record.children for path in paths) for paths in row.regions)
    parts = [
        f"{units.count(number, 'region')} of {units.count(size, 'block')}"
        for size, number in sizes.items()
    ]
    inside = {path for paths in row.regions for path in paths}
    plain = sum(path not in inside for path in record.children)
    rest = f"; {plain} of {units.count(len(record.children), 'block')} without" if plain else ""
    ends = [row.regions[0][0], row.regions[-1][-1]] if row.regions else []
    where = f", `{'` to `'.join(dict.fromkeys(ends))}`" if ends else ""
    return f"{' and '.join(parts) or 'no region'}{where}{rest}"


def _recomputation(row: Row) -> Iterator[str]:
    cost = row.cost
    if not row.recomputed_nodes:
        return
    text = f"recomputes {by_op(row)}"
    if cost is not None:
        text += (
            f": {units.percent(cost.recomputed_flops_share, 1)} of the forward's operations, "
            f"{units.percent(cost.recomputed_moved_bytes_share, 0)} of its bytes moved"
        )
    yield text


def _time_readings(row: Row, record: RunRecord) -> Iterator[str]:
    total, ratio = row.estimate("total"), total_ratio(row)
    parts = [] if total is None else list(_spread(total, _scale(row)))
    if ratio is not None:
        parts.append(f"{ratio_interval(ratio)} the time of {_reference_name(row, record)}")
        reference = record.reference_of(row)
        apart = None if reference is None else medians_apart(row, reference, ratio)
        if apart is not None:
            parts.append(
                f"that is the median of the rounds' ratios, the two medians make "
                f"{units.ratio(apart)}: some rounds were disturbed whole"
            )
    if parts:
        step = " + step" if row.estimate("step") else ""
        yield f"forward + backward{step} {'; '.join(parts)}"


def _scale(row: Row) -> TimeScale | None:
    """What the times that are said of a row have in common."""
    return scale_of([row.estimate("total")])


def _spread(total: Estimate, scale: TimeScale | None) -> Iterator[str]:
    """The median with its interval, or without one where there are too few rounds for it."""
    if total.low is None or total.high is None:
        yield units.duration(total.median, scale)
    else:
        yield units.interval(total.median, total.low, total.high, scale)
    if total.least != total.most:
        least = units.duration(total.least, scale)
        yield f"middle half within {units.percent(total.iqr_share, 1)}, least {least}"


def _engine_readings(row: Row, record: RunRecord) -> Iterator[str]:
    """What is known of another engine's row."""
    if row.agreement is not None and not _is_said(row.agreement, row, record):
        yield agreement_text(row.agreement)
    reference = record.reference_of(row)
    is_same = reference is not None and reference.key == (OURS, row.strategy)
    if row.own_ratio is not None and not is_same:
        word = row.own_ratio.verdict
        yield f"{ratio_interval(row.own_ratio)} the time of ckpt's {row.strategy}: {word}"
    if row.compile_s is not None and row.memory is not None and row.compiled is None:
        planned_bytes = row.memory.compiled_temp_bytes
        planned = (
            ""
            if planned_bytes is None
            else f"; the compiler planned {units.size(planned_bytes)} of temporaries for the whole "
            "program"
        )
        yield f"compiled in {units.duration(row.compile_s)}, in no time above{planned}"


def _is_said(known: Agreement, row: Row, record: RunRecord) -> bool:
    """Whether it is the row's agreement with itself, or the answer has `identical`."""
    is_identical = known.loss_relative == known.gradient_relative == 0.0
    return known.beside == row.strategy or (is_identical and record.base_of(row) is not None)


def agreement_text(known: Agreement) -> str:
    """How far loss and gradients are from what they have to be."""
    whose = "ckpt's" if known.beside == OURS else f"{known.beside}'s"
    if known.loss_relative == 0.0 and known.gradient_relative == 0.0:
        return f"loss and gradients are {whose}, bit for bit"
    return (
        f"loss within {known.loss_relative:.2g} ({known.loss_ulp:.3g} ulp) of {whose}, gradients "
        f"within {known.gradient_relative:.2g} ({known.gradient_ulp:.3g} ulp): "
        f"{'agrees' if known.agrees else 'DIFFERS'}, tolerance {known.tolerance:g}"
    )
