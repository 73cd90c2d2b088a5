"""Files that a record is exported to: one format a file, which registers itself.

Adding a format is adding its file; nothing else names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, TypeVar

from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.measure.record import RunRecord
from ckptcli.report.formats.base import REGISTRY, Exporter, draws_pass, no_pass

__all__ = ["Exporter", "chosen", "draws_pass", "exporter_for", "no_pass", "registry"]

STDOUT = "-"

ExporterKind = TypeVar("ExporterKind", bound=Exporter[Any])


def registry() -> dict[str, type[Exporter[RunRecord]]]:
    """Every format by name, in the order of the names."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(REGISTRY.items()))


def exporter_for(path: str, format_name: str | None) -> Exporter[RunRecord]:
    """The exporter that `format_name` names, else the one for the suffix of `path`.

    Raises:
        UnknownNameError: no format has this name.
        UsageError: no format has this suffix, stdout without a format, or something that the
            format needs is missing.
    """
    return chosen(registry(), path, format_name)


def chosen(
    known: Mapping[str, type[ExporterKind]], path: str, format_name: str | None
) -> ExporterKind:
    """The one of `known` that `format_name` names, else the one for the suffix of `path`.

    Raises:
        UnknownNameError, UsageError: as `exporter_for`.
    """
    if format_name is not None:
        if format_name not in known:
            raise UnknownNameError("format", format_name, known)
        return known[format_name]()
    if path == STDOUT:
        raise UsageError("`-` has no suffix to tell the format", f"add --format {'|'.join(known)}")
    by_suffix = {suffix: exporter for exporter in known.values() for suffix in exporter.suffixes}
    fitting = [suffix for suffix in by_suffix if path.lower().endswith(suffix)]
    if not fitting:
        raise UsageError(
            f"the name `{path}` does not tell the format",
            f"known suffixes: {' '.join(sorted(by_suffix))}",
        )
    return by_suffix[max(fitting, key=len)]()
