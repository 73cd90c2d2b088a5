"""`--backend`, `--device` and `--threads`: which array library computes, where, on how many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ckptcli.backends.registry import AUTO, open_backend
from ckptcli.cli.streams import note, warn
from ckptcli.errors import DtypeError, UsageError
from ckptcli.measure.machine import blas_threads
from ckptcli.options.program import DeviceOptions

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend


def open_device(options: DeviceOptions, dtype: str | None, quiet: bool) -> Backend:
    """The backend that the options stand for; says on stderr what `auto` took.

    Raises:
        UnknownNameError: no such backend.
        UsageError: a library, a device or a dtype that there is not.
    """
    backend = open_backend(options.backend_name, options.device_name)
    if options.device_name == AUTO:
        note(f"--device auto takes {backend.label}", quiet)
    if options.threads is not None:
        backend.limit_threads(options.threads)
    try:
        if dtype is not None:  # else the workload's own, which asks for itself
            backend.checked_dtype(dtype)
    except DtypeError as error:
        raise UsageError(error.message, error.hint) from error
    return backend


@contextmanager
def limited_threads(options: DeviceOptions, quiet: bool) -> Iterator[None]:
    """Inside, the BLAS has the threads that the options say; tells where it cannot.

    To be entered before anything loads the array library, which may read them but once.
    """
    with blas_threads(options.threads) as warning:
        warn([warning] if warning else [], quiet)
        yield
