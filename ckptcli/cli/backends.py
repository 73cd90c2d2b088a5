"""`ckpt backends`: the array libraries, their devices, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from ckptcli import units
from ckptcli.cli.command import options_command
from ckptcli.cli.json_output import print_json

if TYPE_CHECKING:
    from ckptcli.backends.registry import ArrayLibrary, DeviceFacts
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.list import ListOptions

SCHEMA = "ckpt.backends/1"


@dataclass(frozen=True, slots=True)
class _Found:
    """A library as it is here; `missing` is why it cannot compute, None if it can."""

    name: str
    title: str
    version: str | None
    devices: tuple[DeviceFacts, ...]
    dtypes: tuple[str, ...]
    missing: str | None
    install: str


@options_command("backends")
def command(options: ListOptions, line: Line) -> None:
    """List the array libraries: version, devices with their memory, dtypes, what is missing."""
    from ckptcli.backends.registry import AUTO, libraries, place_of

    found = [_look(library) for library in libraries().values()]
    name, device = place_of(AUTO)
    if options.data.as_json:
        auto = {"backend": name, "device": device}
        entries = [asdict(one) for one in found]
        print_json({"schema": SCHEMA, "backends": entries, "auto": auto})
        return
    for one in found:
        click.echo("\n".join(_lines(one)))
    click.echo(f"--device auto takes --backend {name} --device {device}")


def _look(library: ArrayLibrary) -> _Found:
    """Load the library, if it is installed, and ask for its devices."""
    version = library.installed_version()
    devices: tuple[DeviceFacts, ...] = ()
    dtypes: tuple[str, ...] = ()
    missing = f"{library.title} is not installed" if version is None else None
    if version is not None:
        try:
            devices = tuple(_with_memory(device) for device in library.devices())
            dtypes = library.open(devices[0].name).dtypes if devices else ()
        except Exception as error:
            from ckptcli.backends.registry import not_loaded

            missing = not_loaded(library, error)
        else:
            missing = None if devices else f"no device of {', '.join(library.device_names)}"
    return _Found(library.name, library.title, version, devices, dtypes, missing, library.install)


def _with_memory(device: DeviceFacts) -> DeviceFacts:
    """The processor has the machine's memory, which no array library tells."""
    if device.is_gpu or device.memory_bytes is not None:
        return device
    from ckptcli.measure.machine import memory_bytes

    return replace(device, memory_bytes=memory_bytes())


def _lines(found: _Found) -> Iterator[str]:
    yield f"{found.name}: {found.title} {found.version or units.UNKNOWN}"
    for device in found.devices:
        memory = "" if device.memory_bytes is None else f", {units.size(device.memory_bytes)}"
        title = f"  {device.title}" if device.title else ""
        yield f"  --device {device.name}{title}{memory}"
    if found.dtypes:
        yield f"  dtypes: {', '.join(found.dtypes)}"
    if found.missing is not None:
        yield f"  missing: {found.missing}"
    if found.version is None:
        yield f"  install: {found.install}"
