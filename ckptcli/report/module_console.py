"""A PyTorch module of the user's own for the eye: its profile, and the list of what is held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.module_record import ModuleRecord, ModuleSaved
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import PHASES
from ckptcli.report.comparison import ratio_interval
from ckptcli.report.console import WORD_STYLES, Screen


def render_module(record: ModuleRecord, screen: Screen) -> str:
    """The whole screen, ready to print."""
    own = f"parameters and buffers {units.size(record.parameters_bytes)}"
    return screen.render(
        record.title,
        f"{own}, input {units.size(record.input_bytes)}",
        _table(record, screen),
        *_readings(record),
    )


def _table(record: ModuleRecord, screen: Screen) -> Table:
    table = screen.table()
    table.add_column("strategy", no_wrap=True)
    for name in ("saved", "peak", *PHASES, "vs none"):
        table.add_column(name, justify="right", overflow="fold")
    for row in record.rows:
        memory = row.memory
        count = "" if memory is None else f" ({memory.saved_tensors})"
        table.add_row(
            row.strategy,
            units.size(None if memory is None else memory.saved_bytes) + count,
            units.size(None if memory is None else memory.peak_bytes),
            *(units.duration(row.median_s(phase)) for phase in PHASES),
            "reference" if row is record.rows[0] else _time_verdict(row),
        )
    return table


def _time_verdict(row: PeerRecord) -> str:
    ratio = row.ratio
    return units.UNKNOWN if ratio is None else f"{units.ratio(ratio.median)} {ratio.verdict}"


def _readings(record: ModuleRecord) -> Iterator[str | Text]:
    first, *others = record.rows
    for row in others:
        yield from _reading(record, row)
    partial = ", partial" if record.partial else ""
    yield Text(
        f"{first.library}, {units.threads(first.threads)}; seed {record.seed}; "
        f"{units.count(record.rounds, 'round')} interleaved{partial}; stopped: {record.stopped}",
        style="dim",
    )


def _reading(record: ModuleRecord, row: PeerRecord) -> Iterator[str | Text]:
    yield Text(row.strategy, style="bold")
    if row.reason is not None:
        yield f"  n/a: {row.reason}"
        return
    yield f"  {_regions(record, row)}"
    yield f"  {_agreement(row)}"
    if row.ratio is not None:
        yield f"  takes {ratio_interval(row.ratio)} the time of none: {row.ratio.verdict}"
    judgement = record.judgements.get(row.strategy)
    if judgement is not None:
        word = (judgement.word, WORD_STYLES[judgement.word])
        yield Text.assemble("  verdict: ", word, f": {judgement.reason}")


def _regions(record: ModuleRecord, row: PeerRecord) -> str:
    """`8 regions of 3 children`, `2 regions of 4 children and 1 region of 3 children`."""
    regions = record.regions[row.strategy]
    sizes = Counter(len(paths) for paths in regions)
    parts = [
        f"{units.count(number, 'region')} of {size} {'child' if size == 1 else 'children'}"
        for size, number in sizes.items()
    ]
    plain = len(record.children) - sum(map(len, regions))
    rest = f"; {plain} of {len(record.children)} children without" if plain else ""
    return f"{' and '.join(parts) or 'no region'}{rest}"


def _agreement(row: PeerRecord) -> str:
    known = row.agreement
    assert known is not None
    if known.loss_relative == 0.0 and known.gradient_relative == 0.0:
        return "loss and gradients are those of none, bit for bit"
    word = "agrees" if known.agrees else "DIFFERS"
    return (
        f"loss within {known.loss_relative:.2g} of none's, gradients within "
        f"{known.gradient_relative:.2g}: {word}, tolerance {known.tolerance:g}"
    )


def render_module_saved(title: str, saved: Sequence[ModuleSaved], screen: Screen) -> str:
    """The list, largest first, with its total."""
    total_bytes = sum(storage.bytes for storage in saved)
    head = f"{title}: {units.count(len(saved), 'tensor')}, {units.size(total_bytes)} held"
    if not saved:
        return screen.render(head)
    table = screen.table()
    table.add_column("size", justify="right", no_wrap=True)
    for name in ("module", "shape", "held by"):
        table.add_column(name, overflow="fold")
    for storage in saved:
        shape = f"{list(storage.shape)} {storage.dtype}"
        table.add_row(units.size(storage.bytes), storage.module, shape, ", ".join(storage.ops))
    return screen.render(head, table)
