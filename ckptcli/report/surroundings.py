"""How a run came about, as text: its workload, its rounds, its machine, its origin."""

from __future__ import annotations

import shlex

from ckptcli import units
from ckptcli.measure.record import RunRecord

SHORT_COMMIT = 12
"""As many digits of a commit as tell it apart."""

PARTIAL = "partial: the run ended early"


def heading(record: RunRecord) -> str:
    """The workload in words, its name once and files without their folders."""
    name = str(record.workload.get("name", ""))
    title = ", ".join(map(_without_folders, record.title.split(", ")))
    if not name or title.startswith(name):
        return title.replace(f"{name} = ", f"{name} ", 1)
    return f"{name}, {title}" if " = " in title.split(", ")[0] else f"{name} {title}"


def _without_folders(part: str) -> str:
    """`graph = a/b.json:1` as `graph = b.json:1`."""
    name, mark, value = part.rpartition(" = ")
    head, colon, path = ("", "", value) if mark else value.rpartition(": ")
    return f"{name}{mark}{head}{colon}{path.replace(chr(92), '/').rpartition('/')[2]}"


def partial_line(record: RunRecord) -> str:
    """That a run is not complete, for a screen that has no line on its rounds."""
    return f"{PARTIAL}, after {units.count(record.rounds, 'round')}: {record.stopped}"


def rounds_line(record: RunRecord) -> str:
    """How the times came about."""
    partial = f"; {PARTIAL}" if record.partial else ""
    processes = f" over {record.processes} processes" if record.processes > 1 else ""
    times = f"{_rounds(record)} interleaved{processes}; stopped: " if record.rounds else ""
    return f"{record.device}, seed {record.seed}; {times}{record.stopped}{partial}"


def _rounds(record: RunRecord) -> str:
    """`9 rounds`; of several programs of each, `9 to 25 rounds of each program`."""
    if not record.programs:
        return units.count(record.rounds, "round")
    most = max(part.rounds for part in record.parts)
    least = "" if most == record.rounds else f"{record.rounds} to "
    return f"{least}{units.count(most, 'round')} of each program"


def machine_facts(record: RunRecord) -> list[tuple[str, str]]:
    """What is known of the machine, named."""
    machine = record.machine
    variables = machine.openblas_variables.items()
    return [
        ("processor", _known(machine.cpu)),
        ("cores", _known(machine.cores)),
        ("memory", units.size(machine.memory_bytes)),
        *_accelerator_facts(record),
        ("system", machine.os),
        ("Python", machine.python),
        ("array library", record.library or f"NumPy {machine.numpy}"),
        ("NumPy", machine.numpy),
        ("BLAS", _known(machine.blas)),
        ("BLAS threads", _known(machine.blas_threads)),
        ("OPENBLAS variables", ", ".join(f"{k}={v}" for k, v in variables) or "none"),
        ("ckpt", record.version),
    ]


def _accelerator_facts(record: RunRecord) -> list[tuple[str, str]]:
    """The device that computed, where that is no processor."""
    device = record.machine.accelerator
    if device is None:
        return []
    memory, driver = units.size(device.memory_bytes), _known(device.driver)
    return [("accelerator", f"{device.model}, {memory}, driver {driver}")]


def machine_line(record: RunRecord) -> str:
    """The machine in one line."""
    facts = dict(machine_facts(record))
    accelerator = f"{facts['accelerator']}; " if "accelerator" in facts else ""
    return (
        f"{accelerator}{facts['processor']}, {facts['cores']} cores, {facts['memory']}; Python "
        f"{facts['Python']}, {libraries(record)}, BLAS {facts['BLAS']}, "
        f"{units.threads(record.machine.blas_threads)}; ckpt {facts['ckpt']}"
    )


def libraries(record: RunRecord) -> str:
    """The array library, and NumPy where that is another."""
    return ", ".join(dict.fromkeys([record.library or "NumPy", f"NumPy {record.machine.numpy}"]))


def origin_facts(record: RunRecord) -> list[tuple[str, str]]:
    """When, where and from what the run was made, named; as far as it is known."""
    origin = record.origin
    if origin is None:
        return []
    facts = [
        ("began", _moment(origin.began)),
        ("host", origin.host),
        ("commit", f"{origin.commit}{_changes(origin.is_clean)}" if origin.commit else None),
        ("command", shlex.join(origin.command) or None),
    ]
    return [(name, value) for name, value in facts if value is not None]


def origin_line(record: RunRecord) -> str:
    """`2026-01-31 12:00:00 UTC on HOST, commit 0123456789ab with changes`; empty if not known."""
    origin = record.origin
    if origin is None:
        return ""
    host = f" on {origin.host}" if origin.host else ""
    changes = _changes(origin.is_clean)
    commit = f", commit {origin.commit[:SHORT_COMMIT]}{changes}" if origin.commit else ""
    return f"{_moment(origin.began)}{host}{commit}"


def _moment(began: str) -> str:
    return began.replace("T", " ").replace("Z", " UTC")


def _changes(is_clean: bool | None) -> str:
    return " with changes" if is_clean is False else ""


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)
