"""What holds for every test, and fixtures that tests of several files use."""

from __future__ import annotations

import gc
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.compiled import Compiled
from ckptcli.measure.rounds import caller_has_frozen
from ckptcli.options.workload import WorkloadOptions
from ckptcli.peers.base import PeerNetwork
from ckptcli.profiling import peer_passes
from ckptcli.workloads.program import ProgramWorkload
from ckptcli.workloads.registry import open_workloads
from tests.fast_cases import FAST_CASES, mark_and_count
from tests.program_kit import Command, Opener

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and children would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before `-m` chooses."""
    mark_and_count(items, config.stash.setdefault(FAST_CASES, Counter()))


@pytest.fixture(autouse=True, scope="module")
def frozen_objects() -> None:
    """Leave what tests and libraries hold for good out of collections: a run makes several.

    With two thousand tests and three array libraries in memory each took a quarter of a second.
    What was asked before, by a file that measures while it is collected, is asked again.
    """
    _freeze()


@pytest.fixture(autouse=True)
def frozen_library(request: pytest.FixtureRequest) -> None:
    """Nor go through a library again that a test of this file has loaded."""
    if len(sys.modules) - _frozen_modules > LIBRARY and NOT_FROZEN not in request.fixturenames:
        _freeze()


LIBRARY = 100
"""So many modules more are one."""

NOT_FROZEN = "nothing_set_aside"

_frozen_modules = 0


def _freeze() -> None:
    global _frozen_modules
    gc.collect()
    gc.freeze()
    _frozen_modules = len(sys.modules)
    if not caller_has_frozen():
        caller_has_frozen.cache_clear()


@pytest.fixture(scope="module")
def nothing_set_aside(frozen_objects: None) -> Iterator[None]:
    """For thousands of measurements: each sets aside what there is, and gives it back."""
    gc.unfreeze()
    caller_has_frozen.cache_clear()
    yield
    caller_has_frozen.cache_clear()


@pytest.fixture(autouse=True)
def few_fresh_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own for each program that JAX compiles takes longer than most tests; those
    that are about it have the mark, and what is run in a process has them all.
    """
    if request.node.get_closest_marker("fresh_process") is None:
        monkeypatch.setattr(peer_passes, "in_fresh_process", _without_process)


def _without_process(network: PeerNetwork, compiled: Compiled) -> Compiled:
    del network
    return replace(compiled, why_no_process="left out of this test")


@pytest.fixture(scope="session")
def programs_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of this process of pytest alone: JAX writes a file while another process may read it."""
    return str(tmp_path_factory.mktemp("programs"))


@pytest.fixture(autouse=True)
def compiled_once(request: pytest.FixtureRequest, programs_folder: str) -> None:
    """Let JAX compile equal programs once in all that this process runs of the tests.

    But for what moves a program to a process of its own, as every command in a process does: JAX
    cannot pack a second time what it has read from a file.
    """
    if sys.modules.get("jax") is None:
        return
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    folder = None if request.node.get_closest_marker("fresh_process") else programs_folder
    if jax.config.jax_compilation_cache_dir != folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        reset_cache()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is released is released by its last reference."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """Writes a program, opens `make` of it with these options."""

    def open_text(text: str, name: str = "make", **options: Any) -> ProgramWorkload:
        path = tmp_path / "mine.py"
        path.write_text(text)
        (workload,) = open_workloads(f"{path}:{name}", WorkloadOptions(**options))
        assert isinstance(workload, ProgramWorkload)
        return workload

    return open_text


@pytest.fixture
def told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs a command on a program beside the caller; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *command: str, name: str = "make") -> tuple[int, str, str]:
        Path("mine.py").write_text(text)
        arguments = command or ("log",)
        code = run_command([*arguments, "--workload", f"mine.py:{name}"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run
