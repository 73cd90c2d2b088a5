"""How far a pass raises the resident memory of the process: a witness that no account has a say in.

Linux keeps the largest resident size of a process and lets it be set back (`/proc/self/clear_refs`,
5); elsewhere the figure is not known. What the C library keeps of freed memory is given back first:
a pass that fills it again would seem to need nothing.

Source: proc(5), `VmHWM` and `clear_refs`; malloc_trim(3).
"""

from __future__ import annotations

import gc
from pathlib import Path

from ckptcli.backends.allocator import release_freed_memory
from ckptcli.measure.rounds import collector_off
from ckptcli.measure.subject import Subject, whole_pass

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


def resident_rise_bytes(subject: Subject) -> int | None:
    """How far one pass raises the resident memory above what the process has before it.

    None where the system does not tell.
    """
    gc.collect()
    release_freed_memory()
    if not _reset_peak():
        return None
    before_bytes = _status_bytes("VmRSS")
    with collector_off():
        result = whole_pass(subject)
        peak_bytes = _status_bytes("VmHWM")
        del result
    if before_bytes is None or peak_bytes is None:
        return None
    return max(0, peak_bytes - before_bytes)


def _reset_peak() -> bool:
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def _status_bytes(field: str) -> int | None:
    """A line such as `VmHWM:   123 kB`."""
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    words = next((line.split() for line in lines if line.startswith(f"{field}:")), [])
    return int(words[1]) * 1024 if len(words) == 3 and words[2] == "kB" else None
