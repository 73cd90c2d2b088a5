"""A run for the eye: the answers, the table, each strategy's lines, pictures, details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.memory import Memory
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Sample
from ckptcli.measure.row import PHASES, Row
from ckptcli.report.comparison import command_line, total_ratio, verdict
from ckptcli.report.gradient_table import fill_gradient_table, gradient_lines
from ckptcli.report.readings import answer, readings, reason, title
from ckptcli.report.screen import Screen
from ckptcli.report.surroundings import libraries
from ckptcli.report.timeline_text import peak_bars, timeline_text

WIDE = 100
NARROW = 76

PICTURE_WIDTH = 100

WORD_STYLES = {
    "agrees": "green",
    "effective": "green",
    "held only": "yellow",
    "no effect": "yellow",
    "worse": "red",
    "wrong": "bold red",
    "reference": "dim",
}

Part = str | Text | Table


def render_run(
    record: RunRecord, screen: Screen, *, verbose: bool = False, quiet: bool = False
) -> str:
    """The whole screen, ready to print; `quiet` leaves the answers and the table alone."""
    parts: list[Part] = [
        screen.wrapped(record.title),
        *(_answer(row, record, screen) for row in record.rows),
        _comparison(record, screen),
        *_gradients(record, screen),
    ]
    if not quiet:
        parts += _details(record, screen, verbose)
    return screen.render(*parts)


def _answer(row: Row, record: RunRecord, screen: Screen) -> Text:
    line = screen.wrapped(f"{record.label(row)}: {answer(row, record)}")
    word = verdict(row, record)
    start = len(record.label(row)) + 2
    if line.plain[start:].startswith(word):
        line.stylize(WORD_STYLES.get(word, ""), start, start + len(word))
    return line


def _details(record: RunRecord, screen: Screen, verbose: bool) -> Iterator[Part]:
    """Each strategy's lines, the pictures, and what the figures say."""
    width = min(screen.width, PICTURE_WIDTH)
    for row in record.rows:
        yield from _seed_lines(row, record, verbose)
    for draw in (timeline_text, peak_bars):
        picture = draw(record, width, screen.unicode)
        yield from ("", picture) if picture else ()
    yield ""
    for row in record.rows:
        yield from _reading(row, record, screen)
    yield from _unclear(record, screen)
    if verbose:
        yield from (_peak_table(row, record, screen) for row in record.rows if _has_peak(row))
    yield screen.wrapped(_machine_line(record), style="dim")


def _seed_lines(row: Row, record: RunRecord, verbose: bool) -> Iterator[str]:
    """The lines of the experiment that this program began with, in its wording."""
    memory = row.memory
    if memory is None:
        return
    yield f"device = {row.device}, {record.title}"
    yield f"params + input          in_use = {_in_use(memory.params_input_bytes)}"
    yield f"after forward           in_use = {_in_use(memory.after_forward_bytes)}"
    first = len(row.passes.warmup)
    if verbose:
        for rep, sample in enumerate([*row.passes.warmup, *row.samples]):
            yield _rep_line(rep, sample, memory)
    last = first + len(row.samples) - 1
    if last >= first and row.median_s("forward") is not None:
        yield (
            f"reps {first}..{last}: median forward {units.duration(row.median_s('forward'))}, "
            f"median backward {units.duration(row.median_s('backward'))}"
        )


def _rep_line(rep: int, sample: Sample, memory: Memory) -> str:
    check = "" if sample.check is None else f", sum(grad w0) = {sample.check:.4f}"
    return (
        f"rep {rep}: after forward in_use = {_in_use(memory.after_forward_bytes)}, "
        f"forward {units.duration(sample.forward_s):>8}, "
        f"backward {units.duration(sample.backward_s):>8}{check}"
    )


def _in_use(size_bytes: int | None) -> str:
    return f"{units.size(size_bytes):>11}"


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
    for row in record.rows:
        memory = row.memory
        count = f" ({memory.saved_tensors})" if wide and memory is not None else ""
        again = row.recomputed_nodes
        table.add_row(
            record.label(row),
            units.size(row.saved_bytes) + count,
            units.size(row.peak_bytes),
            *([] if narrow else [units.UNKNOWN if again is None else str(again)]),
            *(units.duration(row.median_s(phase)) for phase in phases),
            _ratio(row, record),
        )
    return table


def _gradients(record: RunRecord, screen: Screen) -> list[Part]:
    """What a program with one number to differentiate by is held against."""
    lines = gradient_lines(record)
    if not lines:
        return []
    tight = screen.width < WIDE
    return [*lines, fill_gradient_table(screen.table(tight=tight), record)]


def _ratio(row: Row, record: RunRecord) -> str:
    if row is record.reference:
        return "reference"
    ratio = total_ratio(row)
    return units.UNKNOWN if ratio is None else f"{units.ratio(ratio.median)} {ratio.verdict}"


def _reading(row: Row, record: RunRecord, screen: Screen) -> Iterator[Part]:
    """What the figures of a row say, its verdict last."""
    yield screen.wrapped(title(row, record), style="bold")
    for sentence in readings(row, record):
        yield screen.wrapped(sentence, "  ")
    if row.judgement is not None:
        line = screen.wrapped(f"verdict: {row.judgement.word}: {reason(row, record)}", "  ")
        start = len("  verdict: ")
        word = row.judgement.word
        line.stylize(WORD_STYLES[word], start, start + len(word))
        yield line
    elif row.reason is not None:
        yield screen.wrapped(reason(row, record), "  ")


def _unclear(record: RunRecord, screen: Screen) -> Iterator[Part]:
    ratios = [total_ratio(row) for row in record.rows]
    if any(ratio is not None and ratio.verdict == "unclear" for ratio in ratios):
        again = command_line(record, max(49, 2 * record.rounds)) or "more --reps"
        after = units.count(record.rounds, "round")
        yield screen.wrapped(f"the time ratio is unclear after {after}; try: {again}")


def _has_peak(row: Row) -> bool:
    return row.memory is not None and row.memory.peak_live is not None


def _peak_table(row: Row, record: RunRecord, screen: Screen) -> Table:
    assert row.memory is not None
    assert row.memory.peak_live is not None
    peak = row.memory.peak_live
    table = screen.table(
        f"{record.label(row)}: live at the peak of backward, {peak.total_tensors} storages"
    )
    for name in ("node", "op", "shape", "size", "why", "made at"):
        table.add_column(
            name, justify="right" if name in ("node", "size") else "left", overflow="fold"
        )
    for tensor in peak.largest:
        table.add_row(
            "" if tensor.node is None else str(tensor.node),
            tensor.op or "",
            str(list(tensor.shape)),
            units.size(tensor.bytes),
            tensor.why,
            tensor.source,
        )
    return table


def next_commands(record: RunRecord) -> Sequence[str]:
    """What a reader of this screen may want next; commands that run the same workload."""
    again = command_line(record)
    if again is None:
        return ("add --export report.html for a page to keep",)
    return (f"{again} --export report.html",)


def _machine_line(record: RunRecord) -> str:
    machine = record.machine
    partial = ", partial" if record.partial else ""
    return (
        f"{_known(machine.cpu)}, {_known(machine.cores)} cores, {libraries(record)}, "
        f"BLAS {_known(machine.blas)}, {units.threads(machine.blas_threads)}; seed "
        f"{record.seed}; {units.count(record.rounds, 'round')} interleaved{partial}; "
        f"stopped: {record.stopped}"
    )


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)
