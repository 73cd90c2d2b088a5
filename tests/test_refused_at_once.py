"""What cannot end well is refused before anything runs; what a user's code does is its own."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import OutputFileError
from ckptcli.measure.bootstrap import _resampled_median, _stream
from ckptcli.report.output import OutputFile
from tests.test_endings import SMALL, ckpt

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links and long names")

ONCE = [*SMALL, "--reps", "1", "-q"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--export", "a" * 300 + ".json"], "File name too long"),
        (["--export", "loop.json"], "symbolic links"),
        (["--export", "loop.json", "--force"], "symbolic links"),
        (["--export", "a.json", "--export", "./a.json"], "are one file"),
        (["--export", "link.json", "--export", "b.json", "--force"], "are one file"),
        (["--export", "hard.json", "--export", "b.json", "--force"], "are one file"),
    ],
)
def test_an_export_that_cannot_be_is_refused_at_once(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "b.json").write_text("precious")
    (tmp_path / "link.json").symlink_to("b.json")
    (tmp_path / "hard.json").hardlink_to(tmp_path / "b.json")
    done = ckpt(*ONCE, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, message in done.stderr) == (2, "", True), done.stderr
    assert (tmp_path / "b.json").read_text() == "precious"
    assert len(os.listdir(tmp_path)) == 4


def test_of_two_writers_of_a_file_neither_is_lost_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with OutputFile.open(path, False) as first, OutputFile.open(path, False) as second:
        first.write("first")
        with pytest.raises(OutputFileError, match="was written by another process meanwhile"):
            second.write("second")
        first.write("first again")
        assert path.read_text() == "first again"
        path.write_text("by hand")
        with pytest.raises(OutputFileError, match=r"run\.json"):
            first.write("third")
    assert path.read_text() == "by hand"
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize("form", ["run", "log"])
@pytest.mark.slow
def test_a_name_that_the_system_cannot_write_is_an_error_of_one_line(
    tmp_path: Path, form: str
) -> None:
    text = {
        "run": '[ckpt]\nexport = "журнал.json"\n',
        "log": '[autodiff.logger]\nlevel = "full"\nfile = "журнал.log"\n',
    }[form]
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ONCE if form == "run" else ["log", "-l", "1", "-n", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", *words, "--config", "mine.toml"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        cwd=tmp_path,
        env={**os.environ, **plain},
    )
    assert (done.returncode, "Traceback" in done.stderr) == ({"run": 2, "log": 1}[form], False)
    assert "cannot be written: 'ascii' codec" in done.stderr


PROGRAM = """
import os
class Mute(Exception):
    def __str__(self):
        raise ValueError("no")
def mute(device):
    raise Mute
def loud(device):
    os.write(1, b"raw")
    os.system("echo of a child")
    print("printed")
    w = device.tensor([1.0]).require_grad()
    return lambda: (w * w).sum()
"""


def test_an_exception_that_cannot_be_told_is_named_by_its_type(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PROGRAM)
    done = ckpt("log", "--workload", "net.py:mute", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "Error: `net.py:mute` failed at net.py:7 (`raise Mute`): Mute\n"


def test_whatever_a_program_writes_stdout_is_the_result_alone(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PROGRAM)
    done = ckpt("run", "--workload", "net.py:loud", "--reps", "1", "-q", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "ckpt.run/1"
    for text in ("raw", "of a child", "printed"):
        assert text in done.stderr


def test_samples_are_drawn_as_python_draws_them() -> None:
    """The figures of a comparison are those of a plain loop, at a tenth of the time."""
    source = random.Random(3)
    for sizes in ([7], [8], [1], [3, 5, 5, 2], [4, 4]):
        groups = [[source.random() for _ in range(size)] for size in sizes]
        draw, stream = random.Random(2**63 + 5), _stream(2**63 + 5)
        arrays = [np.asarray(group) for group in groups]
        for _ in range(50):
            chosen = draw.choices(groups, k=len(groups)) if len(groups) > 1 else groups
            drawn = chain.from_iterable(draw.choices(group, k=len(group)) for group in chosen)
            assert _resampled_median(arrays, stream) == statistics.median(drawn)


@pytest.mark.parametrize("threads", ["0", "1025", str(2**62)])
def test_threads_that_no_library_has(threads: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["log", "-l", "1", "-n", "2", "--threads", threads]) == 2
    assert f"{threads} is not in the range 1<=x<=1024" in capsys.readouterr().err
