"""How a run came about, as text: its rounds, its machine, its origin."""

from __future__ import annotations

import shlex

from ckptcli import units
from ckptcli.measure.record import RunRecord


def summary_line(record: RunRecord) -> str:
    """How the times came about."""
    partial = "; partial: the run ended early" if record.partial else ""
    processes = f" over {record.processes} processes" if record.processes > 1 else ""
    return (
        f"{record.device}, seed {record.seed}, {record.rounds} rounds interleaved{processes}, "
        f"stopped: {record.stopped}{partial}"
    )


def machine_facts(record: RunRecord) -> list[tuple[str, str]]:
    """What is known of the machine, named."""
    machine = record.machine
    variables = machine.openblas_variables.items()
    return [
        ("processor", _known(machine.cpu)),
        ("cores", _known(machine.cores)),
        ("memory", units.size(machine.memory_bytes)),
        ("system", machine.os),
        ("Python", machine.python),
        ("array library", record.library or f"NumPy {machine.numpy}"),
        ("NumPy", machine.numpy),
        ("BLAS", _known(machine.blas)),
        ("BLAS threads", _known(machine.blas_threads)),
        ("OPENBLAS variables", ", ".join(f"{k}={v}" for k, v in variables) or "none"),
        ("ckpt", record.version),
    ]


def machine_line(record: RunRecord) -> str:
    """The machine in one line."""
    facts = dict(machine_facts(record))
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}; Python "
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
    changed = {False: ", with changes", True: "", None: ""}[origin.is_clean]
    facts = [
        ("began", origin.began.replace("T", " ").replace("Z", " UTC")),
        ("host", origin.host),
        ("commit", f"{origin.commit}{changed}" if origin.commit else None),
        ("command", shlex.join(origin.command) or None),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)
