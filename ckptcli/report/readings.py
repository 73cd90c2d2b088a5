"""What the figures of a row say, in sentences; the first is the answer.

Screen, Markdown and HTML show the same sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ckptcli import units
from ckptcli.measure import OURS
from ckptcli.measure.memory import AllocatorPeak, Memory
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Agreement, Row
from ckptcli.measure.statistics import Estimate
from ckptcli.report.comparison import (
    by_op,
    gradients_word,
    ratio_interval,
    time_verdict,
    total_ratio,
    verdict,
)

SHOWN_SHARE = 0.001
"""Of a peak, what makes up less than this is left out of its sentence."""


def answer(row: Row, record: RunRecord) -> str:
    """One line: verdict, peak, held, time, gradient."""
    if row.reason is not None:
        return f"{units.UNKNOWN}: {row.reason}"
    base = record.base_of(row)
    word = verdict(row, record)
    if base is None:
        return f"{word}: {', '.join(_plain_figures(row))}"
    peak = f"peak {_change(row.peak_bytes, base.peak_bytes)}"
    held = f"holds {_change(row.saved_bytes, base.saved_bytes)}"
    return f"{word}: {', '.join([peak, held, *_time(row, record), _gradients(row, base)])}"


def _plain_figures(row: Row) -> Iterator[str]:
    yield f"peak {units.size(row.peak_bytes)}"
    yield f"holds {units.size(row.saved_bytes)}"
    if row.median_s("total") is not None:
        yield f"takes {units.duration(row.median_s('total'))}"


def _change(now_bytes: int | None, before_bytes: int | None) -> str:
    if now_bytes is None or before_bytes is None:
        return units.size(now_bytes)
    return units.change(now_bytes, before_bytes)


def _time(row: Row, record: RunRecord) -> Iterator[str]:
    ratio = total_ratio(row)
    if ratio is not None:
        yield f"{units.ratio(ratio.median)} the time ({time_verdict(row, record)})"


def _gradients(row: Row, base: Row) -> str:
    return f"gradients {gradients_word(row, base)}"


def title(row: Row, record: RunRecord) -> str:
    """The row's name; of another engine its library and threads too."""
    name = record.label(row)
    if row.engine == OURS:
        return name
    threads = "" if row.threads is None else f", {units.threads(row.threads)}"
    return f"{name} ({row.library}{threads})"


def reason(row: Row, record: RunRecord) -> str:
    """Why the row got its verdict."""
    if row.reason is not None:
        return f"{units.UNKNOWN}: {row.reason}"
    if row is record.reference:
        return "what the others are compared with"
    return "not compared" if row.judgement is None else row.judgement.reason


def readings(row: Row, record: RunRecord) -> Iterator[str]:
    """What the figures say beside those of the table; nothing of a row that has none."""
    memory, base = row.memory, record.base_of(row)
    if row.reason is not None or memory is None:
        return
    if memory.peak_live is not None:
        yield peak_reading(memory)
    total = row.estimate("total")
    if total is not None:
        yield _time_reading(total)
    if row.regions or (record.children and base is not None):
        yield _regions(row, record)
    if base is not None:
        yield _held_reading(row, base)
    yield from _cost_readings(row, record)
    yield from _engine_readings(row)


def peak_reading(memory: Memory) -> str:
    """The peak of backward, what was live there, and the other peaks."""
    assert memory.peak_live is not None
    parts = ", ".join(
        f"{why} {units.size(size_bytes)}"
        for why, size_bytes in sorted(
            memory.peak_live.bytes_by_why.items(), key=lambda item: -item[1]
        )
        if size_bytes >= SHOWN_SHARE * memory.peak_live.total_bytes
    )
    text = f"live at the peak of backward {units.size(memory.ledger_peak_backward_bytes)} ({parts})"
    text += f"; workspace of kernels on top {units.size(memory.workspace_bytes)}"
    if memory.allocator_backward is not None:
        text += f"; {allocator_text(memory.allocator_backward)}"
    return (
        f"{text}; peak of forward {units.size(memory.peak_forward_bytes)}; "
        f"in use after backward {units.size(memory.after_backward_bytes)}"
    )


def allocator_text(peak: AllocatorPeak) -> str:
    """What the device's allocator tells of a phase."""
    return (
        f"the allocator's peak: requested {units.size(peak.requested_bytes)}, allocated "
        f"{units.size(peak.allocated_bytes)}, reserved {units.size(peak.reserved_bytes)}"
    )


def _time_reading(total: Estimate) -> str:
    text = f"forward + backward {units.interval(total.median, total.low, total.high)}"
    if total.least == total.most:
        return text
    return f"{text}, middle half within {total.iqr_share:.1%}, least {units.duration(total.least)}"


def _regions(row: Row, record: RunRecord) -> str:
    """`8 regions of 3 children`, `2 regions of 4 children and 1 region of 3 children`."""
    sizes = Counter(len(paths) for paths in row.regions)
    parts = [
        f"{units.count(number, 'region')} of {size} {'child' if size == 1 else 'children'}"
        for size, number in sizes.items()
    ]
    plain = len(record.children) - sum(map(len, row.regions))
    rest = f"; {plain} of {len(record.children)} children without" if plain else ""
    return f"{' and '.join(parts) or 'no region'}{rest}"


def _held_reading(row: Row, base: Row) -> str:
    held = _change(row.saved_bytes, base.saved_bytes)
    peak = _change(row.peak_bytes, base.peak_bytes)
    if row.memory is not None and row.memory.offloaded_bytes:
        held += f" and {units.size(row.memory.offloaded_bytes)} on the host"
    return f"holds {held} after forward; peaks {peak}; {_gradients(row, base)}"


def _cost_readings(row: Row, record: RunRecord) -> Iterator[str]:
    ratio, cost = total_ratio(row), row.cost
    text = f"recomputes {by_op(row)}"
    if cost is not None and row.recomputed_nodes:
        text += (
            f": {cost.recomputed_flops_share:.1%} of the forward's operations, "
            f"{cost.recomputed_moved_bytes_share:.0%} of its bytes moved"
        )
    if row.outcome is not None and row.outcome.recomputed_by_op is not None:
        yield text
    if ratio is not None:
        reference = record.reference
        whose = "the reference" if reference is None else record.label(reference)
        yield f"takes {ratio_interval(ratio)} the time of {whose}: {ratio.verdict}"


def _engine_readings(row: Row) -> Iterator[str]:
    """What is known of another engine's row."""
    if row.agreement is not None:
        yield agreement_text(row.agreement)
    if row.own_ratio is not None:
        word = row.own_ratio.verdict
        yield f"takes {ratio_interval(row.own_ratio)} the time of ckpt's {row.strategy}: {word}"
    if row.compile_s is not None and row.memory is not None:
        planned = units.size(row.memory.compiled_temp_bytes)
        yield (
            f"compiled in {units.duration(row.compile_s)}, in no time above; the compiler planned "
            f"{planned} of temporaries for the whole program"
        )


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
