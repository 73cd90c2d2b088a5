"""`--backend` and `--device`: which array library computes, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ckptcli.backends.registry import AUTO, libraries, open_backend
from ckptcli.cli.names import completing
from ckptcli.cli.streams import note
from ckptcli.errors import DtypeError, UsageError

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend

DEFAULT = "numpy"


def _titles() -> dict[str, str]:
    return {name: library.title for name, library in libraries().items()}


def _device_names() -> str:
    """What the libraries know, `cpu|cuda[:N]|auto`."""
    known = dict.fromkeys(name for one in libraries().values() for name in one.device_names)
    return "|".join([*(f"{name}[:N]" if name == "cuda" else name for name in known), AUTO])


def device_options(function: Any) -> Any:
    """`--backend` and `--device`."""
    for option in (
        click.option(
            "--device",
            "device_name",
            metavar=_device_names(),
            help="Where it computes, N the number of a GPU; auto takes a GPU if there is one.  "
            "[default: the library's first]",
        ),
        click.option(
            "--backend",
            "backend_name",
            default=DEFAULT,
            show_default=True,
            metavar="|".join(libraries()),
            shell_complete=completing(_titles),
            help="Array library; `ckpt backends` lists them.",
        ),
    ):
        function = option(function)
    return function


def open_device(params: dict[str, Any]) -> Backend:
    """The backend that a command's options stand for; says on stderr what `auto` took.

    Raises:
        UnknownNameError: no such backend.
        UsageError: a library, a device or a dtype that there is not.
    """
    backend = open_backend(params["backend_name"], params["device_name"])
    if params["device_name"] == AUTO:
        note(f"--device auto takes {backend.label}", bool(params.get("quiet")))
    if params.get("threads") is not None:
        backend.limit_threads(params["threads"])
    try:
        if params["dtype"] is not None:  # else the workload's own, which asks for itself
            backend.checked_dtype(params["dtype"])
    except DtypeError as error:
        raise UsageError(error.message, error.hint) from error
    return backend
