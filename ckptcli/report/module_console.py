"""A PyTorch module of the user's own for the eye: its profile, and the list of what is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.measure.module_record import ModuleRecord, ModuleSaved
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import PHASES
from ckptcli.report.comparison import ratio_interval
from ckptcli.report.console import Screen


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
        assert memory is not None
        table.add_row(
            row.strategy,
            f"{units.size(memory.saved_bytes)} ({memory.saved_tensors})",
            units.size(memory.peak_bytes),
            *(units.duration(row.median_s(phase)) for phase in PHASES),
            "reference" if row is record.rows[0] else _verdict(row),
        )
    return table


def _verdict(row: PeerRecord) -> str:
    ratio = row.ratio
    return units.UNKNOWN if ratio is None else f"{units.ratio(ratio.median)} {ratio.verdict}"


def _readings(record: ModuleRecord) -> Iterator[str | Text]:
    _, *others = record.rows
    regions = ", ".join(record.regions)
    yield f"remat: a checkpoint around each of {len(record.regions)}: {regions}"
    for row in others:
        yield f"  {_agreement(row)}"
        if row.ratio is not None:
            yield f"  takes {ratio_interval(row.ratio)} the time of none: {row.ratio.verdict}"
    first = record.rows[0]
    partial = ", partial" if record.partial else ""
    yield Text(
        f"{first.library}, {units.threads(first.threads)}; seed {record.seed}; "
        f"{units.count(record.rounds, 'round')} interleaved{partial}; stopped: {record.stopped}",
        style="dim",
    )


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
