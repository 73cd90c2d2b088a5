"""A run for the eye: the seed experiment's lines for each strategy, then one comparison table.

Rendered to text and printed elsewhere. The only module that imports rich.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.record import Memory, PeakLive, RunRecord, StrategyRecord

SHOWN_REPS = 3
BOTH_SHOWN_ABOVE = 0.01
"""Ledger and traced peak are both shown when they differ by more than this share."""


def render_run(
    record: RunRecord, *, width: int, color: bool, verbose: bool = False, unicode: bool = True
) -> str:
    """The whole screen, ready to print."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        height=1000,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=True,
    )
    for strategy in record.strategies:
        console.print("\n".join(_seed_lines(strategy, record.title)))
    console.print()
    console.print(_comparison(record, unicode))
    for line in _readings(record):
        console.print(line)
    if verbose:
        for strategy in record.strategies:
            console.print()
            console.print(_peak_table(strategy, unicode))
    console.print(Text(_machine_line(record), style="dim"))
    text = stream.getvalue()
    return text if unicode else text.replace("µ", "u")


def _seed_lines(record: StrategyRecord, title: str) -> Iterator[str]:
    memory = record.memory
    yield f"device = {record.device}, {title}"
    yield f"params + input          in_use = {_in_use(memory.params_input_bytes)}"
    shown = [*record.warmup, *record.samples][:SHOWN_REPS]
    for rep, sample in enumerate(shown):
        check = "" if sample.check is None else f", sum(grad w0) = {sample.check:.4f}"
        yield (
            f"rep {rep}: after forward in_use = {_in_use(memory.after_forward_bytes)}, "
            f"forward {units.duration(sample.forward_s):>8}, "
            f"backward {units.duration(sample.backward_s):>8}{check}"
        )
    first = len(record.warmup)
    last = first + len(record.samples) - 1
    if last >= first:
        yield (
            f"reps {first}..{last}: median forward {units.duration(record.median_s('forward_s'))}, "
            f"median backward {units.duration(record.median_s('backward_s'))}"
        )


def _in_use(size_bytes: int) -> str:
    return f"{units.mebibytes(size_bytes):>11}"


def _comparison(record: RunRecord, unicode: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if unicode else box.ASCII2, pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    for name in ("saved", "peak", "recomputed", "forward", "backward", "total", "vs reference"):
        table.add_column(name, justify="right", no_wrap=True)
    for strategy in record.strategies:
        memory = strategy.memory
        table.add_row(
            strategy.strategy + (" (reference)" if strategy.reference else ""),
            f"{units.size(memory.saved_bytes)} ({memory.saved_tensors})",
            units.size(memory.peak_bytes),
            str(strategy.outcome.recomputed_nodes),
            units.duration(strategy.median_s("forward_s")),
            units.duration(strategy.median_s("backward_s")),
            units.duration(strategy.median_s("total_s")),
            units.ratio(_time_ratio(strategy, record.reference)),
        )
    return table


def _time_ratio(record: StrategyRecord, reference: StrategyRecord | None) -> float | None:
    own_s = record.median_s("total_s")
    reference_s = None if reference is None else reference.median_s("total_s")
    return own_s / reference_s if own_s is not None and reference_s else None


def _readings(record: RunRecord) -> Iterator[str]:
    """What the figures say, a sentence for each strategy."""
    reference = record.reference
    for strategy in record.strategies:
        yield f"{strategy.strategy}: {_peak_reading(strategy.memory)}"
        if reference is not None and strategy is not reference:
            yield f"{strategy.strategy} against {reference.strategy}: " + _against(
                strategy, reference
            )


def _peak_reading(memory: Memory) -> str:
    parts = ", ".join(
        f"{why} {units.size(size_bytes)}"
        for why, size_bytes in sorted(
            memory.peak_live.bytes_by_why.items(), key=lambda item: -item[1]
        )
    )
    counted = memory.ledger_peak_backward_bytes
    traced = memory.traced_peak_backward_bytes
    text = f"peak in backward {units.size(counted)} ({parts})"
    if traced is None:
        text += f", with kernel temporaries {units.UNKNOWN}"
    elif abs(traced - counted) > BOTH_SHOWN_ABOVE * counted:
        text += f", with kernel temporaries {units.size(traced)}"
    return (
        f"{text}; in forward {units.size(memory.ledger_peak_forward_bytes)}; "
        f"in use after backward {units.size(memory.after_backward_bytes)}"
    )


def _against(record: StrategyRecord, reference: StrategyRecord) -> str:
    memory, before = record.memory, reference.memory
    recomputed = ", ".join(f"{n} {op}" for op, n in record.outcome.recomputed_by_op.items())
    same = record.outcome.grad_sha256 == reference.outcome.grad_sha256
    return "; ".join(
        (
            f"holds {_change(memory.saved_bytes, before.saved_bytes)} after forward",
            f"peaks {_change(memory.peak_bytes, before.peak_bytes)}",
            f"recomputes {recomputed or 'nothing'}",
            f"gradients {'identical' if same else 'DIFFER'}",
        )
    )


def _change(now_bytes: int, before_bytes: int) -> str:
    if now_bytes == before_bytes:
        return f"the same {units.size(now_bytes)}"
    share = "" if before_bytes == 0 else f" ({now_bytes / before_bytes - 1:+.0%})"
    return f"{units.size(now_bytes)} instead of {units.size(before_bytes)}{share}"


def _peak_table(record: StrategyRecord, unicode: bool) -> Table:
    peak: PeakLive = record.memory.peak_live
    table = Table(
        box=box.SIMPLE_HEAD if unicode else box.ASCII2,
        pad_edge=False,
        title=f"{record.strategy}: live at the peak of backward, {peak.total_tensors} storages",
        title_justify="left",
    )
    for name in ("node", "op", "shape", "size", "why"):
        table.add_column(name, justify="right" if name in ("node", "size") else "left")
    for tensor in peak.largest:
        table.add_row(
            "" if tensor.node is None else str(tensor.node),
            tensor.op or "",
            str(list(tensor.shape)),
            units.size(tensor.bytes),
            tensor.why,
        )
    return table


def _machine_line(record: RunRecord) -> str:
    machine = record.machine
    return (
        f"{_known(machine.cpu)}, {_known(machine.cores)} cores, NumPy {machine.numpy}, "
        f"BLAS {_known(machine.blas)}, {_known(machine.blas_threads)} threads; "
        f"seed {record.seed}, {_rounds(record)} rounds interleaved"
    )


def _rounds(record: RunRecord) -> str:
    done = min(len(strategy.samples) for strategy in record.strategies)
    return f"{done} of {record.reps}, partial:" if record.partial else str(done)


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)
