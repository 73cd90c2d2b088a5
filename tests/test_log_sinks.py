"""The log: which line an event gives, and where it goes."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.config import LoggerSettings
from ckptcli.errors import LogFileError
from ckptcli.events import (
    BackwardStarted,
    Event,
    GradientRegistered,
    Level,
    NodeCreated,
    Recomputed,
    Retrieved,
    StepStarted,
    Visited,
)
from ckptcli.graph import fresh_node_ids
from ckptcli.report.log import burn_line
from ckptcli.report.log_sinks import LOGGER_NAME, TRACE, LogSink, configure_python_logger, log_sink

ASKED = Retrieved(node_id=7, n_nodes=2, needed_by=9)
PASSED = Visited(node_id=6)
ASKED_LINE = "retrieve_node_output NodeId { value: 7 }: 2 node(s) to compute"
PASSED_LINE = "execute_retro_forward NodeId { value: 6 }"
SILENT: list[Event] = [
    NodeCreated(1, "exp", (0,), (2,), "float32", 8, 2, 16, 1, True, True, True, ()),
    BackwardStarted(9, 3, {7: 1}, ()),
    StepStarted(9, "exp"),
    Recomputed(6, "exp", 1),
    GradientRegistered(6, 1),
]


def sink_of(settings: LoggerSettings, level: Level | None = None) -> LogSink:
    sink = log_sink(settings, stdout=io.StringIO(), stderr=io.StringIO(), level=level)
    assert sink is not None
    return sink


def emit_both(settings: LoggerSettings) -> None:
    with sink_of(settings) as sink:
        sink.emit(ASKED)
        sink.emit(PASSED)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The logger as a fresh process has it, before and after."""
    logger = logging.getLogger(LOGGER_NAME)

    def reset() -> None:
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)

    reset()
    yield logger
    reset()


# The lines.


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        (Level.DISABLED, []),
        (Level.BASIC, [ASKED_LINE]),
        (Level.MEDIUM, [ASKED_LINE]),
        (Level.FULL, [ASKED_LINE, PASSED_LINE]),
    ],
)
def test_lines_of_a_level(level: Level, lines: list[str]) -> None:
    events: list[Event] = [*SILENT, ASKED, *SILENT, PASSED, *SILENT]
    assert [line for event in events if (line := burn_line(event, level))] == lines


def test_the_engine_writes_the_log_of_burn() -> None:
    stdout = io.StringIO()
    settings = LoggerSettings(level=Level.FULL, stdout=True)
    sink = log_sink(settings, stdout=stdout, stderr=io.StringIO())
    device = Device(open_backend("numpy"), BalancedCheckpointing(), sink, fresh_node_ids())
    leaf = device.tensor([2.0]).require_grad()
    leaf.exp().exp().sum().backward()
    kinds = [line.partition(" NodeId")[0] for line in stdout.getvalue().splitlines()]
    assert kinds[0] == "retrieve_node_output"
    assert set(kinds) == {"retrieve_node_output", "execute_retro_forward"}


# Whether there is a sink.


@pytest.mark.parametrize(
    "settings",
    [
        LoggerSettings(),
        LoggerSettings(level=Level.FULL),
        LoggerSettings(stdout=True, stderr=True, file=Path("never.log"), log="info"),
    ],
    ids=["defaults", "no target", "disabled"],
)
def test_no_sink(settings: LoggerSettings) -> None:
    assert log_sink(settings, stdout=io.StringIO(), stderr=io.StringIO()) is None


def test_a_level_given_apart_is_used() -> None:
    quiet = LoggerSettings(stdout=True)
    assert sink_of(quiet, Level.FULL).level is Level.FULL
    loud = LoggerSettings(level=Level.FULL, stdout=True)
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    assert log_sink(loud, **streams, level=Level.DISABLED) is None


# The targets.


class Noting(io.StringIO):
    """A stream that notes its name for every line, and that it was flushed."""

    def __init__(self, name: str, notes: list[str]) -> None:
        super().__init__()
        self.name = name
        self.notes = notes

    def write(self, text: str) -> int:
        self.notes.append(f"{self.name} {text!r}")
        return len(text)

    def flush(self) -> None:
        self.notes.append(f"{self.name} flushed")


def test_order_of_targets(tmp_path: Path, logger: logging.Logger) -> None:
    notes: list[str] = []
    path = tmp_path / "log.txt"

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notes.append(f"logger {record.getMessage()!r}")
            notes.append(f"file then {path.read_text()!r}")

    class FirstStream(Noting):
        def write(self, text: str) -> int:
            notes.append(f"file before stdout {path.read_text()!r}")
            return super().write(text)

    logger.addHandler(Handler())
    logger.setLevel(TRACE)
    settings = LoggerSettings(Level.BASIC, path, True, True, True, "info")
    stdout, stderr = FirstStream("stdout", notes), Noting("stderr", notes)
    sink = log_sink(settings, stdout=stdout, stderr=stderr)
    assert sink is not None
    sink.emit(ASKED)
    line = f"{ASKED_LINE}\n"
    assert notes == [
        f"file before stdout {line!r}",
        f"stdout {line!r}",
        "stdout flushed",
        f"stderr {line!r}",
        "stderr flushed",
        f"logger {ASKED_LINE!r}",
        f"file then {line!r}",
    ]
    sink.close()
    assert not stdout.closed


def test_streams_get_bare_lines() -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    settings = LoggerSettings(level=Level.FULL, stdout=True, stderr=True)
    with log_sink(settings, stdout=stdout, stderr=stderr) or pytest.fail("no sink") as sink:
        for event in (ASKED, *SILENT, PASSED):
            sink.emit(event)
    assert stdout.getvalue() == stderr.getvalue() == f"{ASKED_LINE}\n{PASSED_LINE}\n"


def test_a_file_is_made_at_the_first_line_with_its_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = LoggerSettings(level=Level.BASIC, file=Path("a/b/log.txt"))
    with sink_of(settings) as sink:
        sink.emit(PASSED)
        assert list(tmp_path.iterdir()) == []
        sink.emit(ASKED)
        assert (tmp_path / "a/b/log.txt").read_bytes() == f"{ASKED_LINE}\n".encode()


@pytest.mark.parametrize(("append", "before"), [(True, "an older line\n"), (False, "")])
def test_append(tmp_path: Path, append: bool, before: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text("an older line\n")
    emit_both(LoggerSettings(level=Level.FULL, file=path, append=append))
    assert path.read_text() == f"{before}{ASKED_LINE}\n{PASSED_LINE}\n"


def test_append_false_empties_even_a_longer_file(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("x" * 10_000)
    emit_both(LoggerSettings(level=Level.BASIC, file=path, append=False))
    assert path.read_text() == f"{ASKED_LINE}\n"


def test_a_sink_used_after_closing_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with sink_of(LoggerSettings(level=Level.FULL, file=path, append=False)) as sink:
        sink.emit(ASKED)
        sink.close()
        sink.emit(PASSED)
    assert path.read_text() == f"{ASKED_LINE}\n{PASSED_LINE}\n"


def test_a_sink_that_wrote_nothing_leaves_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("an older line\n")
    with sink_of(LoggerSettings(level=Level.FULL, file=path, append=False)):
        pass
    assert path.read_text() == "an older line\n"


@pytest.mark.parametrize("name", [".", "taken/log.txt"])
def test_a_file_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").write_text("")
    path = tmp_path / name
    with pytest.raises(LogFileError) as caught:
        emit_both(LoggerSettings(level=Level.BASIC, file=path))
    assert f"log file `{path}` cannot be written: " in caught.value.message
    assert caught.value.exit_code == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
def test_a_file_that_cannot_be_written() -> None:
    with pytest.raises(LogFileError, match="`/dev/full` cannot be written: No space left"):
        emit_both(LoggerSettings(level=Level.BASIC, file=Path("/dev/full")))


@pytest.mark.parametrize(
    ("name", "number"), [("info", logging.INFO), ("debug", logging.DEBUG), ("trace", TRACE)]
)
def test_level_of_the_python_logger(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture, name: str, number: int
) -> None:
    caplog.set_level(TRACE, LOGGER_NAME)
    emit_both(LoggerSettings(level=Level.FULL, log=name))
    assert caplog.record_tuples == [
        (LOGGER_NAME, number, ASKED_LINE),
        (LOGGER_NAME, number, PASSED_LINE),
    ]
    assert caplog.records[0].levelname == name.upper()


def test_the_python_logger_made_visible(logger: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    settings = LoggerSettings(level=Level.BASIC, log="trace")
    configure_python_logger(first)
    emit_both(settings)
    configure_python_logger(second)
    emit_both(settings)
    assert first.getvalue() == second.getvalue() == f"{ASKED_LINE}\n"


def test_handlers_of_the_user_are_left_alone(logger: logging.Logger) -> None:
    handler = logging.NullHandler()
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    stream = io.StringIO()
    configure_python_logger(stream)
    emit_both(LoggerSettings(level=Level.BASIC, log="info"))
    assert logger.handlers == [handler]
    assert logger.level == logging.ERROR
    assert stream.getvalue() == ""
