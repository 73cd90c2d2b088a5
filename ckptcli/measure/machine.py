"""The machine that a run happened on, and the memory that it has.

Each fact is collected on its own, so that a missing `/proc` file costs one field. The only module
that imports psutil.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckptcli.backends.cores import usable_cores
from ckptcli.measure.fields import Bytes, Positive

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PROC = Path("/proc")

BLAS_THREAD_BYTES = 64 * 2**20
"""A bound of the address space that BLAS reserves for one thread."""

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The device that computed, where that is no processor of the machine. Null is not known.

    Attributes:
        model: Its name.
        memory_bytes: Its memory, bytes.
        driver: Version of its driver.
    """

    model: str
    memory_bytes: Bytes | None
    driver: str | None


@dataclass(frozen=True, slots=True)
class Machine:
    """What to know about a machine before comparing figures. Null is not known.

    Attributes:
        cpu: Name of the processor.
        cores: Cores that the process may use.
        memory_bytes: Memory of the machine or its container, bytes.
        os: Operating system.
        python: Version of Python.
        numpy: Version of NumPy.
        blas: The BLAS that NumPy uses.
        blas_threads: Its threads.
        openblas_variables: Environment variables that steer OpenBLAS.
        accelerator: The device that computed; null on the processor.
    """

    cpu: str | None
    cores: Positive | None
    memory_bytes: Bytes | None
    os: str
    python: str
    numpy: str
    blas: str | None
    blas_threads: Positive | None
    openblas_variables: dict[str, str]
    accelerator: Accelerator | None = None


def read_machine() -> Machine:
    """The machine as it is now."""
    import numpy as np

    blas = _blas()
    return Machine(
        cpu=_cpu(),
        cores=usable_cores(),
        memory_bytes=memory_bytes(),
        os=platform.platform(),
        python=platform.python_version(),
        numpy=np.__version__,
        blas=None
        if blas is None
        else f"{blas.get('internal_api')} {blas.get('version')} "
        f"{blas.get('architecture', '')}".rstrip(),
        blas_threads=None if blas is None else blas.get("num_threads"),
        openblas_variables={
            name: value for name, value in sorted(os.environ.items()) if name.startswith("OPENBLAS")
        },
    )


def memory_bytes() -> int | None:
    """The memory of the machine, or of the container where that is less."""
    return _smaller(_psutil_memory("total"), _cgroup_bytes("memory.max"))


def available_bytes() -> int | None:
    """The memory that a new allocation can have without swapping."""
    limit, used = _cgroup_bytes("memory.max"), _cgroup_bytes("memory.current")
    left = None if limit is None or used is None else max(0, limit - used)
    kib = _proc_number("meminfo", "MemAvailable:")
    return _smaller(_psutil_memory("available") if kib is None else kib * 1024, left)


@contextmanager
def within_available_memory() -> Iterator[None]:
    """Inside, an allocation that goes beyond the available memory fails with MemoryError.

    Without a limit the system grants it and ends the process when it is written to. The limit is on
    address space, of which BLAS reserves some for each thread. Where the system has no such limit,
    nothing changes.
    """
    import numpy as np

    del np  # Loaded before: what BLAS reserves then is in use already.
    free_bytes, used_bytes = available_bytes(), _address_space_bytes()
    if resource is None or free_bytes is None or used_bytes is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used_bytes + free_bytes + BLAS_THREAD_BYTES * (usable_cores() or 1)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space_bytes() -> int | None:
    pages = _proc_number("self/statm", "")
    if pages is not None:
        return pages * os.sysconf("SC_PAGE_SIZE")
    try:
        import psutil
    except ImportError:
        return None
    try:
        return int(psutil.Process().memory_info().vms)
    except (OSError, psutil.Error):  # no /proc
        return None


def swapped_bytes() -> int | None:
    """Bytes swapped in and out since the machine started."""
    try:
        import psutil
    except ImportError:
        return None
    try:
        swap = psutil.swap_memory()
    except (OSError, psutil.Error):
        return None
    return int(swap.sin + swap.sout)


@contextmanager
def blas_threads(count: int | None) -> Iterator[str | None]:
    """Use `count` BLAS threads inside; None leaves them alone. Yields a warning or None."""
    if count is None:
        yield None
        return
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield _set_thread_variables(count)
        return
    import numpy as np

    del np  # only a loaded BLAS can be limited
    with threadpool_limits(limits=count, user_api="blas"):
        yield None


def _set_thread_variables(count: int) -> str:
    """Without threadpoolctl: the variables that BLAS reads when it is loaded."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)
    if "numpy" in sys.modules:
        return f"--threads {count} has no effect: install threadpoolctl, NumPy is loaded already"
    return (
        f"--threads {count} does not reach the BLAS itself, which may not read the variables that "
        "are set instead: install threadpoolctl"
    )


def _blas() -> dict[str, Any] | None:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    pools: list[dict[str, Any]] = threadpool_info()
    return next((pool for pool in pools if pool.get("user_api") == "blas"), None)


def _cpu() -> str | None:
    try:
        lines = (PROC / "cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return platform.processor() or None
    for line in lines:
        if line.lower().startswith(("model name", "hardware")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or None


def _psutil_memory(field: str) -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    try:
        return int(getattr(psutil.virtual_memory(), field))
    except (OSError, psutil.Error):
        return None


def _proc_number(name: str, label: str) -> int | None:
    """The first number after `label` in a file of Linux; None elsewhere.

    It is where psutil has it from, whose import takes a fifth of NumPy's.
    """
    try:
        text = (PROC / name).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    start = text.find(label)
    words = text[start + len(label) :].split(maxsplit=1) if start >= 0 else []
    return int(words[0]) if words and words[0].isdigit() else None


def _cgroup_bytes(name: str) -> int | None:
    try:
        text = Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None


def _smaller(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return min(known) if known else None
