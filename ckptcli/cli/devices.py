"""`--backend`, `--device` and `--threads`: which array library computes, where, on how many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ckptcli.backends.registry import AUTO, open_backend, place_of
from ckptcli.cli.streams import note, warn
from ckptcli.errors import DtypeError, UsageError
from ckptcli.measure.machine import blas_threads
from ckptcli.options.program import DeviceOptions

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend


def open_device(options: DeviceOptions, dtype: str | None, quiet: bool) -> Backend:
    """The backend that the options stand for; says on stderr which one was taken.

    A device that is named without a backend is that of whichever library has it.

    Raises:
        UnknownNameError: no such backend.
        UsageError: a library, a device or a dtype that there is not.
    """
    name, device = options.backend_name, options.device_name
    is_free = device is not None and not _is_backend_named()
    if device is not None and is_free:
        name, device = place_of(device)
    backend = open_backend(name, device)
    if options.device_name == AUTO or (is_free and name != options.backend_name):
        note(f"--device {options.device_name} takes {backend.label}", quiet)
    if options.threads is not None:
        backend.limit_threads(options.threads)
    try:
        if dtype is not None:  # else the workload's own, which asks for itself
            backend.checked_dtype(dtype)
    except DtypeError as error:
        raise UsageError(error.message, error.hint) from error
    return backend


def _is_backend_named() -> bool:
    """Whether somebody named a library, be it the one that is taken anyway."""
    ctx = click.get_current_context(silent=True)
    source = None if ctx is None else ctx.get_parameter_source("backend_name")
    return source not in (None, ParameterSource.DEFAULT)


def backend_words(options: DeviceOptions) -> list[str]:
    """What a child process has to be told, whose words leave out what is the default."""
    is_left_out = options.backend_name == DeviceOptions().backend_name
    return ["--backend", options.backend_name] if is_left_out and _is_backend_named() else []


@contextmanager
def limited_threads(options: DeviceOptions, quiet: bool) -> Iterator[None]:
    """Inside, the BLAS has the threads that the options say; tells where it cannot.

    To be entered before anything loads the array library, which may read them but once.
    """
    with blas_threads(options.threads) as warning:
        warn([warning] if warning else [], quiet)
        yield
