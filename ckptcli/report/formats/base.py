"""What a format is, and how it makes itself known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.measure.record import RunRecord


Result = TypeVar("Result", contravariant=True)


class Exporter(Protocol[Result]):
    """Writes a result, a record or comparisons of several, in one format.

    Attributes:
        name: what `--format` calls it.
        suffixes: ends of file names that mean this format; of several the longest wins.
        binary: whether it renders bytes.

    A format that is about the pass alone has `draws_pass = True` too: it is refused for what has
    none. Making one raises UsageError where something that the format needs is missing, so that it
    is known before anything is measured.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    binary: ClassVar[bool]

    def render(self, record: Result, /) -> str | bytes:
        """The whole content of the file; the same result gives the same content."""


def draws_pass(exporter: object) -> bool:
    """Whether the format has nothing to show of rows whose pass is not known op by op."""
    return getattr(exporter, "draws_pass", False)


def no_pass(name: str) -> UsageError:
    """What to raise where the format or view `name` has nothing to show."""
    return UsageError(
        f"{name} shows the pass op by op, and no row has one: "
        "it is known of ckpt's own engine and of PyTorch modules",
        "export .html, .md, .csv or .json, which have every row",
    )


REGISTRY: dict[str, type[Exporter[RunRecord]]] = {}
"""Filled by `register`; `ckptcli.report.formats.registry` makes sure that it is full."""

ExporterClass = TypeVar("ExporterClass", bound="type[Exporter[RunRecord]]")


def register(exporter: ExporterClass) -> ExporterClass:
    """Class decorator: makes the format known under its `name`."""
    REGISTRY[exporter.name] = exporter
    return exporter
