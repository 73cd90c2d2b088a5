"""What a format is, and how it makes itself known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord


Result = TypeVar("Result", contravariant=True)


class Exporter(Protocol[Result]):
    """Writes a result, a record or comparisons of several, in one format.

    Attributes:
        name: what `--format` calls it.
        suffixes: ends of file names that mean this format; of several the longest wins.
        binary: whether it renders bytes.

    Making one raises UsageError where something that the format needs is missing, so that it is
    known before anything is measured.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    binary: ClassVar[bool]

    def render(self, record: Result, /) -> str | bytes:
        """The whole content of the file; the same result gives the same content."""


REGISTRY: dict[str, type[Exporter[RunRecord]]] = {}
"""Filled by `register`; `ckptcli.report.formats.registry` makes sure that it is full."""

ExporterClass = TypeVar("ExporterClass", bound="type[Exporter[RunRecord]]")


def register(exporter: ExporterClass) -> ExporterClass:
    """Class decorator: makes the format known under its `name`."""
    REGISTRY[exporter.name] = exporter
    return exporter
