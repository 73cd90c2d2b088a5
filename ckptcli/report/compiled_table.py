"""What compiled programs take: a table, and the same in sentences.

Made for records that have a row of a program that was compiled whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli import units
from ckptcli.measure.compiled import Compiled, named
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.report.cells import Cell, Column, Table

COLUMNS = (
    Column("compiled", 0, "text"),
    Column("residuals", 2),
    Column("temporaries", 3),
    Column("plan", 1),
    Column("process", 4),
    Column("asked again", 6, "text"),
    Column("left", 7, "text"),
    Column("operations", 10),
    Column("lower", 8),
    Column("compile", 9),
    Column("first call", 11),
    Column("steady", 5),
)

EXPLANATION = (
    "Residuals: what the forward pass hands to the backward pass in the program that was traced. "
    "Temporaries, plan: what the compiler planned for temporaries, and with arguments and output "
    "for the whole program. Process: by how much the resident memory of a process that has the "
    "program and its arguments loaded, and nothing else, rose while it ran it once. Asked again, "
    "left: products, library calls and transcendental functions that a checkpoint computes again, "
    "in the program before it was compiled and after. Operations: floating-point operations after "
    "it was compiled, without those of library calls. Lower: tracing and lowering; steady: the "
    "median of the total time."
)

_OPERATIONS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def compiled_table(record: RunRecord) -> Table | None:
    """A row for each compiled program; None where there is none."""
    known = [(row, row.compiled) for row in record.rows if row.compiled is not None]
    scales = list(map(units.time_scale, zip(*(_times(*each) for each in known))))
    rows = [_cells(*each, record, scales) for each in known]
    return Table(COLUMNS, rows) if rows else None


def _times(row: Row, known: Compiled) -> tuple[float | None, ...]:
    """To the first call, and of every one after that."""
    return known.lower_s, known.build_s, known.first_call_s, row.median_s("total")


def _cells(
    row: Row, known: Compiled, record: RunRecord, scales: Sequence[units.TimeScale | None]
) -> tuple[Cell, ...]:
    plan = known.plan
    return tuple(
        map(
            Cell,
            (
                record.label(row),
                units.size(row.saved_bytes),
                units.size(None if plan is None else plan.temp_bytes),
                units.size(known.peak_bytes),
                units.size(known.fresh_process_bytes),
                _named(known.asked_by_op),
                _named(known.left_by_op),
                operations(known.flops),
                *map(units.duration, _times(row, known), scales),
            ),
        )
    )


def compiled_readings(known: Compiled) -> Iterator[str]:
    """The same in sentences: the plan in its parts, what was computed again, how long it took."""
    plan = known.plan
    if plan is not None:
        yield (
            f"the compiler planned {units.size(plan.whole_bytes)}: arguments "
            f"{units.size(plan.argument_bytes)}, output {units.size(plan.output_bytes)}, "
            f"temporaries {units.size(plan.temp_bytes)}"
        )
    yield _process(known)
    if known.asked_by_op:
        yield (
            f"asked to compute {named(known.asked_by_op)} again, the compiled program does so with "
            f"{_named(known.left_by_op)}"
        )
    yield (
        f"traced and lowered in {units.duration(known.lower_s)}, compiled in "
        f"{units.duration(known.build_s)}, first call {units.duration(known.first_call_s)}, in no "
        f"time above; {operations(known.lowered_flops)} floating-point operations as lowered, "
        f"{operations(known.flops)} as compiled, without those of library calls"
    )


def _process(known: Compiled) -> str:
    if known.why_no_process is not None:
        return f"in a process of its own: {units.UNKNOWN}, {known.why_no_process}"
    rise = units.size(known.fresh_process_bytes)
    text = f"a process of its own rose by {rise} while it ran the program once"
    if known.device_peak_bytes is not None:
        text += f"; the device's allocator peaked at {units.size(known.device_peak_bytes)}"
    return text


def _named(counts: dict[str, int] | None) -> str:
    return units.UNKNOWN if counts is None else named(counts)


def operations(number: float | None) -> str:
    """`397.3 M`."""
    if number is None:
        return units.UNKNOWN
    unit, name = next((u for u in _OPERATIONS if number >= u[0]), (1.0, ""))
    return f"{number / unit:.1f} {name}".rstrip() if name else f"{number:.0f}"
