"""What the tests of a user's own PyTorch modules share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ckptcli.cli.main import run_command


def profiled(capsys: pytest.CaptureFixture[str], module: str, *arguments: str) -> dict[str, Any]:
    """The JSON of a short `ckpt run` of a module."""
    command = ["run", "--engine", "torch", "--module", module, "--reps", "2", "--json"]
    assert run_command([*command, *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found
