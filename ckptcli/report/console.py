"""A run for the eye: the seed experiment's lines for each strategy, then one comparison table.

Rendered to text and printed elsewhere. The only module that imports rich.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import PHASES, AllocatorPeak, Memory, RunRecord, StrategyRecord
from ckptcli.measure.statistics import Estimate
from ckptcli.report.comparison import (
    command_line,
    gradients_word,
    peer_recomputes,
    peer_sentences,
    peer_title,
)
from ckptcli.report.gradient_table import fill_gradient_table, gradient_lines
from ckptcli.report.timeline_text import peak_bars, timeline_text

SHOWN_REPS = 3
BOTH_SHOWN_ABOVE = 0.01
"""Ledger and traced peak are both shown when they differ by more than this share."""

WIDE = 100
NARROW = 76

PICTURE_WIDTH = 100

SHOWN_SHARE = 0.001
"""Of a peak, what makes up less than this is left out of its sentence."""

WORD_STYLES = {
    "effective": "green",
    "held only": "yellow",
    "no effect": "yellow",
    "worse": "red",
    "wrong": "bold red",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """What the text is rendered for."""

    width: int = 120
    color: bool = False
    unicode: bool = True

    def render(self, *parts: str | Text | Table) -> str:
        """The parts below each other."""
        stream = io.StringIO()
        console = Console(
            file=stream,
            width=self.width,
            height=1000,
            color_system="standard" if self.color else None,
            force_terminal=self.color,
            no_color=not self.color,
            highlight=False,
            emoji=False,
            markup=False,
            _environ={},
        )
        for part in parts:
            console.print(part, soft_wrap=not isinstance(part, Table))
        text = "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))
        return text if self.unicode else text.replace("µ", "u")

    def table(self, title: str | None = None, tight: bool = False) -> Table:
        """An empty table in the glyphs that the stream has."""
        return Table(
            box=box.SIMPLE_HEAD if self.unicode else box.MARKDOWN,
            pad_edge=False,
            padding=(0, 0) if tight else (0, 1),
            title=title,
            title_justify="left",
        )


def render_run(record: RunRecord, screen: Screen, *, verbose: bool = False) -> str:
    """The whole screen, ready to print."""
    parts: list[str | Text | Table] = [
        line for strategy in record.strategies for line in _seed_lines(strategy, record.title)
    ]
    parts += [
        _comparison(record, screen),
        *_gradients(record, screen),
        timeline_text(record, min(screen.width, PICTURE_WIDTH), screen.unicode),
        "",
        peak_bars(record, min(screen.width, PICTURE_WIDTH), screen.unicode),
        "",
        *_readings(record),
        *_peer_readings(record),
    ]
    if verbose:
        parts += [_peak_table(strategy, screen) for strategy in record.strategies]
    parts.append(Text(_machine_line(record), style="dim"))
    parts += [Text(line, style="dim") for line in _next_commands(record)]
    return screen.render(*parts)


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
            f"reps {first}..{last}: median forward {units.duration(record.median_s('forward'))}, "
            f"median backward {units.duration(record.median_s('backward'))}"
        )


def _in_use(size_bytes: int) -> str:
    return f"{units.mebibytes(size_bytes):>11}"


def _comparison(record: RunRecord, screen: Screen) -> Table:
    """Full from 100 columns; less wide, what the lines below say again is left out."""
    wide, narrow = screen.width >= WIDE, screen.width < NARROW
    phases = PHASES if wide else ("total",)
    table = screen.table(tight=narrow)
    table.add_column("strategy", overflow="fold")
    for name in ("saved", "peak", *([] if narrow else ["recomputed"]), *phases, "vs reference"):
        table.add_column(
            name.replace("reference", "ref") if narrow else name,
            justify="right",
            overflow="fold",
            no_wrap=True,
        )
    for strategy in record.strategies:
        memory = strategy.memory
        count = f" ({memory.saved_tensors})" if wide else ""
        table.add_row(
            strategy.strategy,
            units.size(memory.saved_bytes) + count,
            units.size(memory.ledger_peak_bytes),
            *([] if narrow else [str(strategy.outcome.recomputed_nodes)]),
            *(units.duration(strategy.median_s(phase)) for phase in phases),
            _ratio(strategy, record),
        )
    for peer in record.peers:
        table.add_row(*_peer_cells(peer, wide, narrow))
    return table


def _peer_cells(peer: PeerRecord, wide: bool, narrow: bool) -> Iterator[str]:
    memory = peer.memory
    yield peer.name
    count = f" ({memory.saved_tensors})" if wide and memory is not None else ""
    yield units.size(None if memory is None else memory.saved_bytes) + count
    yield units.size(None if memory is None else memory.peak_bytes)
    if not narrow:
        again = peer.recomputed_by_op
        yield units.UNKNOWN if again is None else str(sum(again.values()))
    yield from (units.duration(peer.median_s(phase)) for phase in (PHASES if wide else ("total",)))
    ratio = peer.ratio
    yield units.UNKNOWN if ratio is None else f"{units.ratio(ratio.median)} {ratio.verdict}"


def _peer_readings(record: RunRecord) -> Iterator[str | Text]:
    for peer in record.peers:
        yield Text(peer_title(peer), style="bold")
        if peer.recomputed_by_op is not None:
            yield f"  recomputes {peer_recomputes(peer)}"
        yield from (f"  {sentence}" for sentence in peer_sentences(peer))


def _gradients(record: RunRecord, screen: Screen) -> list[str | Table]:
    """What a program with one number to differentiate by is held against."""
    lines = gradient_lines(record)
    if not lines:
        return []
    tight = screen.width < WIDE
    return [*lines, fill_gradient_table(screen.table(tight=tight), record)]


def _ratio(record: StrategyRecord, run: RunRecord) -> str:
    if record is run.reference:
        return "reference"
    ratio = None if record.ratios is None else record.ratios["total"]
    return units.UNKNOWN if ratio is None else f"{units.ratio(ratio.median)} {ratio.verdict}"


def _readings(record: RunRecord) -> Iterator[str | Text]:
    """What the figures say: a few lines for each strategy, its verdict last."""
    reference = record.reference
    for strategy in record.strategies:
        yield Text(strategy.strategy, style="bold")
        yield f"  {_peak_reading(strategy.memory)}"
        if strategy.times is not None:
            yield f"  {_time_reading(strategy.times['total'])}"
        if reference is not None and strategy.judgement is not None:
            yield f"  {_held_reading(strategy, reference)}"
            yield f"  {_cost_reading(strategy)}"
            word, reason = strategy.judgement.word, strategy.judgement.reason
            yield Text.assemble("  verdict: ", (word, WORD_STYLES[word]), f": {reason}")
    unclear = [s for s in record.strategies if s.ratios and s.ratios["total"].verdict == "unclear"]
    if unclear:
        again = command_line(record, max(49, 2 * record.rounds)) or "more --reps"
        yield f"the time ratio is unclear after {units.count(record.rounds, 'round')}; try: {again}"


def _peak_reading(memory: Memory) -> str:
    parts = ", ".join(
        f"{why} {units.size(size_bytes)}"
        for why, size_bytes in sorted(
            memory.peak_live.bytes_by_why.items(), key=lambda item: -item[1]
        )
        if size_bytes >= SHOWN_SHARE * memory.peak_live.total_bytes
    )
    counted = memory.ledger_peak_backward_bytes
    traced = memory.traced_peak_backward_bytes
    text = f"peak in backward {units.size(counted)} ({parts})"
    if traced is None:
        text += f", with kernel temporaries {units.UNKNOWN}"
    elif abs(traced - counted) > BOTH_SHOWN_ABOVE * counted:
        text += f", with kernel temporaries {units.size(traced)}"
    if memory.allocator_backward is not None:
        text += f"; {allocator_text(memory.allocator_backward)}"
    return (
        f"{text}; in forward {units.size(memory.ledger_peak_forward_bytes)}; "
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


def _held_reading(record: StrategyRecord, reference: StrategyRecord) -> str:
    saved = units.change(record.memory.saved_bytes, reference.memory.saved_bytes)
    peak = units.change(record.memory.ledger_peak_bytes, reference.memory.ledger_peak_bytes)
    word = gradients_word(record, reference)
    if record.memory.offloaded_bytes:
        saved += f" and {units.size(record.memory.offloaded_bytes)} on the host"
    return f"holds {saved} after forward; peaks {peak}; gradients {word}"


def _cost_reading(record: StrategyRecord) -> str:
    by_op, cost = record.outcome.recomputed_by_op, record.cost
    text = f"recomputes {', '.join(f'{n} {op}' for op, n in by_op.items()) or 'nothing'}"
    if by_op:
        text += (
            f": {cost.flops_share:.1%} of the forward's operations, "
            f"{cost.moved_bytes_share:.0%} of its bytes moved"
        )
    if record.ratios is None:
        return text
    ratio = record.ratios["total"]
    kind = "95 %" if ratio.exact else "range"
    return (
        f"{text}; takes {units.ratio(ratio.median)} the time "
        f"[{ratio.low:.3f} {ratio.high:.3f}, {kind}]: {ratio.verdict}"
    )


def _peak_table(record: StrategyRecord, screen: Screen) -> Table:
    peak = record.memory.peak_live
    table = screen.table(
        f"{record.strategy}: live at the peak of backward, {peak.total_tensors} storages"
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


def _next_commands(record: RunRecord) -> Iterator[str]:
    """What a reader of this screen may want next."""
    yield "next: add --export report.html for a page to keep"
    judged = [s for s in record.strategies if s.judgement is not None]
    if judged and record.workload.get("name") == "silu":
        yield f"      ckpt log -s {judged[0].strategy} --explain"


def _machine_line(record: RunRecord) -> str:
    machine = record.machine
    partial = ", partial" if record.partial else ""
    return (
        f"{_known(machine.cpu)}, {_known(machine.cores)} cores, {_libraries(record)}, "
        f"BLAS {_known(machine.blas)}, {units.threads(machine.blas_threads)}; seed "
        f"{record.seed}; {units.count(record.rounds, 'round')} interleaved{partial}; "
        f"stopped: {record.stopped}"
    )


def _libraries(record: RunRecord) -> str:
    numpy = f"NumPy {record.machine.numpy}"
    return numpy if record.library in ("", numpy) else f"{record.library}, {numpy}"


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)
