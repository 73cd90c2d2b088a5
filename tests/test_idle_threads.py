"""The command has OpenBLAS's idle threads let go of their cores, unless its user says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ckptcli.cli.idle_threads import VARIABLE, let_go_of_cores

RUN = ("run", "-l", "1", "-n", "4", "-s", "none", "--memory-only", "--json", "-q")


@pytest.mark.parametrize(("said", "recorded"), [(None, "19"), ("26", "26")])
def test_it_is_set_before_numpy_is_loaded_and_recorded(said: str | None, recorded: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if said is not None:
        environment[VARIABLE] = said
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", *RUN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["machine"]["openblas_variables"][VARIABLE] == recorded


def test_where_numpy_is_loaded_already_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    let_go_of_cores()
    assert "numpy" in sys.modules
    assert VARIABLE not in os.environ
