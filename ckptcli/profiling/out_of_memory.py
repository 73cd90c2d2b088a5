"""A pass that ran out of memory: what was live at that moment, kept while the pass is cleaned up.

Invariant: the error that is raised refers to no frame of the pass, so that its arrays are freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, Protocol

from ckptcli import units
from ckptcli.errors import OutOfMemoryError

if TYPE_CHECKING:  # the record is loaded where a pass has failed, or where one is made
    from ckptcli.measure.memory import PeakLive
    from ckptcli.measure.record import Failure


class Library(Protocol):
    """What knows its own errors: a backend, or an engine of `ckptcli.peers`."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether `error` says that there is not enough memory."""


class PassOutOfMemory(OutOfMemoryError):
    """Strategies whose pass did not fit; `failures` has one entry each."""

    def __init__(self, *failures: Failure) -> None:
        super().__init__(
            "; ".join(map(failure_text, failures)),
            "use a smaller workload, or a strategy that holds less",
        )
        self.failures = failures


def failure_text(failure: Failure) -> str:
    """One sentence: the strategy, the phase, what the library said, what was live."""
    live = failure.live
    text = f"{failure.strategy}: out of memory in {failure.phase}: {failure.message.rstrip('.')}"
    if live.total_tensors:
        parts = ", ".join(
            f"{why} {units.size(count)}"
            for why, count in sorted(live.bytes_by_why.items(), key=lambda item: -item[1])
        )
        storages = units.count(live.total_tensors, "storage")
        text += f"; live then: {units.size(live.total_bytes)} in {storages} ({parts})"
    return text


def out_of_memory(library: Library, error: BaseException) -> BaseException | None:
    """The error, or the cause of it, that says that memory ran out; None if none does."""
    cause: BaseException | None = error
    while cause is not None and not library.is_out_of_memory(cause):
        cause = cause.__cause__
    return cause


@contextmanager
def told_as_failure(
    library: Library,
    strategy: str,
    phase: Callable[[], str],
    live: Callable[[], PeakLive] | None = None,
) -> Iterator[None]:
    """Inside, running out of memory raises `PassOutOfMemory`.

    `phase` and `live` are asked while the pass's arrays are still there; a pass that carries no
    ledger has no `live`.
    """
    failure = None
    try:
        yield
    except Exception as error:
        cause = out_of_memory(library, error)
        if cause is None:
            raise
        message = str(cause).strip().split("\n")[0] or type(cause).__name__
        failure = _failure(strategy, phase(), message, live)
        _forget_frames(error)
    if failure is not None:
        raise PassOutOfMemory(failure)


def _failure(
    strategy: str, phase: str, message: str, live: Callable[[], PeakLive] | None
) -> Failure:
    from ckptcli.measure.memory import PeakLive
    from ckptcli.measure.record import Failure

    return Failure(strategy, phase, message, PeakLive((), 0, 0, {}) if live is None else live())


def raise_told(library: Library, strategy: str, phase: str, error: Exception) -> NoReturn:
    """Raise the error of a pass that carries no ledger: as it is, or as `PassOutOfMemory`."""
    with told_as_failure(library, strategy, lambda: phase):
        raise error


def _forget_frames(error: BaseException) -> None:
    """The error stays the context of the one that is raised for it; its frames must not."""
    known: BaseException | None = error
    while known is not None:
        known.__traceback__ = None
        known = known.__cause__ or known.__context__
