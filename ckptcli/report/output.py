"""A file that a result is written to: opened before measuring, replaced whole, never half.

Invariants: the target is either what it was or a whole content, at every moment; no temporary file
stays behind, unless the process is killed by a signal that it cannot handle.
"""

from __future__ import annotations

import contextlib
import os
import stat
import weakref
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from ckptcli.errors import OutputFileError, UsageError
from ckptcli.report.closing import Closing

_OPEN: weakref.WeakSet[OutputFile] = weakref.WeakSet()

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class OutputFile(Closing):
    """Writes `path` by way of a temporary file beside it. Use `open`; `close` when done."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self.target = target
        self._temporary: Path | None = None
        self._descriptor: int | None = None
        self._known = {None, _identity(target)}
        _OPEN.add(self)

    @classmethod
    def open(cls, path: Path, force: bool) -> OutputFile:
        """Make sure that `path` can be written, without touching it.

        Raises:
            UsageError: it exists and `force` is not given, it is not a regular file, no file can
                have its name, or its directory is absent or cannot be written.
        """
        _check_target(path, force)
        file = cls(path, Path(os.path.realpath(path)))  # what a link points at, not the link
        try:
            file._open_temporary()
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be written: {_reason(error)}",
                "name a file in a directory that exists and is writable",
            ) from error
        return file

    def write(self, data: str | bytes) -> None:
        """Replace the content of the file; text is written as UTF-8.

        Raises:
            OutputFileError: it cannot be written, or somebody else wrote it meanwhile; the target
                is what it was before.
        """
        content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
        self.write_parts([content])

    def write_parts(self, parts: Iterable[bytes]) -> None:
        """The same with a content that is made while it is written.

        Raises:
            OutputFileError: as `write`.
        """
        if _identity(self.target) not in self._known:
            raise OutputFileError(
                f"`{self.path}` was written by another process meanwhile, and is left as it is",
                "export each run to a file of its own",
            )
        try:
            self._replace(parts)
        except OSError as error:
            raise OutputFileError(
                f"`{self.path}` cannot be written: {_reason(error)}",
                "free space or name another file",
            ) from error

    def close(self) -> None:
        """Remove the temporary file, if there is one; the target stays. May be called again."""
        descriptor, self._descriptor = self._descriptor, None
        with contextlib.suppress(OSError):
            if descriptor is not None:
                os.close(descriptor)
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            self._temporary = None  # last: an interrupt before it leaves the work to the next call

    def _replace(self, parts: Iterable[bytes]) -> None:
        """Write beside the target, then rename; whatever interrupts leaves no temporary file."""
        try:
            if self._descriptor is None:
                self._open_temporary()
            assert self._descriptor is not None
            assert self._temporary is not None
            for part in parts:
                _write_all(self._descriptor, part)
            os.fsync(self._descriptor)
            self._keep_mode(self._temporary)
            self._known.add(_identity(self._temporary))
            os.replace(self._temporary, self.target)
        finally:
            self.close()

    def _open_temporary(self) -> None:
        for number in count():
            temporary = self.target.with_name(f".ckpt-{os.getpid()}-{number}.tmp")
            self._temporary = temporary  # first: whatever interrupts, `close` knows the name
            try:
                self._descriptor = os.open(temporary, _NEW_FILE, 0o666)  # less the umask
            except FileExistsError:
                self._temporary = None
                continue
            return

    def _keep_mode(self, temporary: Path) -> None:
        """A file that is replaced keeps its permissions."""
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(self.target.stat().st_mode))


def close_all() -> None:
    """Remove every temporary file, for a process that ends without unwinding."""
    for file in list(_OPEN):
        file.close()


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    """Which content a file has, as far as the system tells; None without a file."""
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_dev, known.st_ino, known.st_mtime_ns, known.st_size


def _check_target(path: Path, force: bool) -> None:
    if not _exists(path):
        return
    if path.exists() and not path.is_file():
        raise UsageError(f"`{path}` is not a regular file", "name a file")
    if not force:
        raise UsageError(f"`{path}` exists already", "--force replaces it")


def _exists(path: Path) -> bool:
    """Whether there is a file or a link, and what it points at can be one."""
    try:
        path.lstat()
        path.stat()
    except FileNotFoundError:  # none, or what a link points at
        return os.path.lexists(path)
    except (OSError, ValueError) as error:
        reason = _reason(error) if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"`{path}` cannot be written: {reason}", "name a file that can exist"
        ) from error
    return True


def _write_all(descriptor: int, content: bytes) -> None:
    """All of it, to the system."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
