"""Files of results: refused early, replaced whole, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ckptcli.errors import OutputFileError, UsageError
from ckptcli.report import output
from ckptcli.report.output import OutputFile


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_file_appears_with_the_first_write_and_is_replaced_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with OutputFile.open(path, force=False) as file:
        assert not path.exists()
        assert len(files(tmp_path)) == 1, "a temporary file shows that the directory is writable"
        file.write("partial, and longer\n")
        assert path.read_text() == "partial, and longer\n"
        file.write(b"whole\n")
        assert path.read_bytes() == b"whole\n"
    assert files(tmp_path) == ["r.json"]


def test_nothing_written_leaves_nothing(tmp_path: Path) -> None:
    file = OutputFile.open(tmp_path / "r.json", force=False)
    file.close()
    file.close()
    assert files(tmp_path) == []


def test_text_is_utf_8_and_is_not_translated(tmp_path: Path) -> None:
    with OutputFile.open(tmp_path / "r.csv", force=False) as file:
        file.write("µ\r\n\udc80\n")
    assert (tmp_path / "r.csv").read_bytes() == b"\xc2\xb5\r\n\\udc80\n"


def test_an_existing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    with pytest.raises(UsageError, match=r"r\.json` exists already; --force") as caught:
        OutputFile.open(path, force=False)
    assert caught.value.exit_code == 2
    assert files(tmp_path) == ["r.json"]


def test_with_force_the_old_content_stays_until_the_first_write(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o640)
    with OutputFile.open(path, force=True) as file:
        assert path.read_text() == "old"
        file.write("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    OutputFile.open(path, force=True).close()
    assert path.read_text() == "new"


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with OutputFile.open(tmp_path / "r.json", force=False) as file:
        file.write("x")
    assert (tmp_path / "r.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_is_kept_and_what_it_points_at_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "r.json"
    target.write_text("old")
    link = tmp_path / "r.json"
    link.symlink_to(target)
    with OutputFile.open(link, force=True) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("name", ["absent/r.json", "file/r.json"])
def test_a_directory_that_is_none_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written: N") as caught:
        OutputFile.open(tmp_path / name, force=True)
    assert caught.value.exit_code == 2


def test_a_directory_that_is_not_writable_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:  # root may write everywhere
        raise fail(errno.EACCES)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        OutputFile.open(tmp_path / "r.json", force=False)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(UsageError, match="is not a regular file"):
            OutputFile.open(path, force=True)


def fail(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("old", [None, "old"])
def test_a_failing_write_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, old: str | None
) -> None:
    path = tmp_path / "r.json"
    if old is not None:
        path.write_text(old)
    file = OutputFile.open(path, force=True)
    with monkeypatch.context() as patch:

        def refuse(*_: object) -> None:
            raise fail(errno.ENOSPC)

        patch.setattr(os, call, refuse)
        with pytest.raises(OutputFileError, match="cannot be written: No space left") as caught:
            file.write("new")
    assert caught.value.exit_code == 1
    assert files(tmp_path) == ([] if old is None else ["r.json"])
    assert old is None or path.read_text() == old
    file.write("later")
    file.close()
    assert path.read_text() == "later"


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    with OutputFile.open(tmp_path / "r.json", force=False) as file:
        file.write("0123456789")
    assert (tmp_path / "r.json").read_text() == "0123456789"


def test_an_interrupt_while_writing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    file = OutputFile.open(path, force=False)
    file.write("complete rounds")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        file.write("more rounds")
    assert files(tmp_path) == ["r.json"]
    assert path.read_text() == "complete rounds"


def test_a_leftover_of_another_process_is_not_touched(tmp_path: Path) -> None:
    leftover = tmp_path / f".ckpt-{os.getpid()}-0.tmp"
    leftover.write_text("someone's")
    with OutputFile.open(tmp_path / "r.json", force=False) as file:
        file.write("x")
    assert leftover.read_text() == "someone's"
    assert files(tmp_path) == [leftover.name, "r.json"]


def test_two_files_of_one_directory_do_not_meet(tmp_path: Path) -> None:
    with (
        OutputFile.open(tmp_path / "a", force=False) as first,
        OutputFile.open(tmp_path / "b", force=False) as second,
    ):
        first.write("a")
        second.write("b")
        first.write("c")
    assert [(tmp_path / name).read_text() for name in ("a", "b")] == ["c", "b"]
    assert files(tmp_path) == ["a", "b"]


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """Ctrl-C before the line of this number of those of the module that run; gives their count."""
    ran = [0]

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != output.__file__:
            return None
        if event == "line":
            ran[0] += 1
            if ran[0] == line:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield ran
    finally:
        sys.settrace(None)


def test_an_interrupt_at_any_line_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for line in count(1):
        with OutputFile.open(path, force=True) as file:
            file.write("old")
            with contextlib.suppress(KeyboardInterrupt), interrupted_at(line) as ran:
                file.write("new")
            assert path.read_text() in ("old", "new")
        assert [found.name for found in tmp_path.iterdir()] == [path.name], line
        if ran[0] < line:
            break
    assert line > 15
    assert path.read_text() == "new"
