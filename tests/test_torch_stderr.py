"""What PyTorch writes to stderr past Python: one line is left out, the others arrive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptcli.peers.torch_stderr import without_lines
from tests.backend_kit import NEEDS_TORCH

USER = """
import os
import torch
from torch import nn


class Telling(nn.Linear):
    def forward(self, x):
        os.write(2, b"told by the module\\n")
        self.before = self.now if hasattr(self, "now") else None
        self.now = torch.zeros(100, 100)
        return super().forward(x)


def make():
    return nn.Sequential(Telling(4, 4), Telling(4, 4)), torch.rand(2, 4)
"""


def test_other_lines_arrive_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    with without_lines(b"warning"):
        os.write(2, b"first\na warning of a library\n")
        os.write(2, b"second\na line that is not ended")
    os.write(2, b" but later\n")
    assert capfd.readouterr().err == "first\nsecond\na line that is not ended but later\n"


def test_an_error_leaves_stderr_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        with without_lines(b"warning"):
            os.write(2, b"a warning\nbefore\n")
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


@NEEDS_TORCH
@pytest.mark.slow
def test_a_module_that_lets_go_of_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from ckptcli.cli.main import run_command

    monkeypatch.chdir(tmp_path)
    Path("telling.py").write_text(USER)
    assert run_command(["run", "--module", "telling.py:make", "--reps", "1", "-q"]) == 0
    told = capfd.readouterr().err
    assert "told by the module" in told
    assert "profiling" not in told
