"""A program that cannot fit is refused with what all that is there at once needs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ckptcli.backends.numpy_backend import NumpyBackend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import OutOfMemoryError
from ckptcli.profiling import memory_needed
from ckptcli.profiling.memory_needed import check_fits
from ckptcli.workloads.silu import SiluWorkload


class FullDevice(NumpyBackend):
    """A device of its own, with so much memory left."""

    is_cpu = False
    left_bytes = 0

    def free_bytes(self) -> int:
        return self.left_bytes


def test_on_a_device_every_strategy_needs_a_network_of_its_own() -> None:
    """In timed rounds; one pass after the other needs one at a time."""
    workload, backend = SiluWorkload(4, 32), FullDevice()
    one, two = (
        [parse_strategy(name) for name in names] for names in (("none",), ("none", "remat"))
    )
    needed_bytes = workload.needed_bytes(["none"])
    assert workload.loaded_bytes == 4 * (4 * 32 * 32 + workload.batch * 32)
    backend.left_bytes = needed_bytes
    check_fits(workload, one, backend, at_once=True)
    check_fits(workload, two, backend)
    whole = f"{needed_bytes + workload.loaded_bytes} bytes"
    with pytest.raises(OutOfMemoryError, match=f"{whole}.*, parameters and input 2 times among"):
        check_fits(workload, two, backend, at_once=True)
    backend.left_bytes += workload.loaded_bytes
    check_fits(workload, two, backend, at_once=True)


class Copying:
    """An engine that copies what it is given, as JAX does."""

    copies_arrays = True


class Sharing:
    """An engine that takes the host's arrays, as PyTorch does."""

    copies_arrays = False


@pytest.mark.parametrize(
    ("dtype", "is_cpu", "names", "engines", "copies"),
    [
        ("float32", True, ["none", "remat"], [], 0),
        ("float32", True, ["none", "remat"], [Sharing()], 0),
        ("float32", True, ["none", "remat"], [Copying(), Sharing(), Copying()], 4),
        ("float32", True, ["none", "sqrt"], [Copying()], 2),
        (
            "float32",
            True,
            ["remat:policy=offload_dot_with_no_batch_dims", "none"],
            [Copying()],
            1,
        ),
        ("bfloat16", True, ["none", "remat", "sqrt"], [], 2),
        ("float16", True, ["none", "remat"], [], 0),
        ("float32", False, ["none", "remat", "sqrt"], [], 2),
    ],
)
def test_who_has_parameters_and_input_of_its_own(
    dtype: str, is_cpu: bool, names: list[str], engines: list[Any], copies: int
) -> None:
    """The host's arrays are shared, but by what is on a device, of another dtype, or copies."""
    workload, backend = SiluWorkload(4, 32, dtype=dtype), FullDevice()
    strategies = [parse_strategy(name) for name in names]
    backend.is_cpu = is_cpu
    backend.left_bytes = workload.needed_bytes(names) + copies * workload.loaded_bytes
    check_fits(workload, strategies, backend, engines, at_once=True)
    backend.left_bytes -= 1
    with pytest.raises(OutOfMemoryError):
        check_fits(workload, strategies, backend, engines, at_once=True)


@pytest.mark.parametrize(
    "command",
    ["run", "run --consume-grads", "log", "saved", "check", "plan --budget 9MiB --consume-grads"],
)
def test_every_command_refuses_what_cannot_fit(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 2**20)
    words = [*command.split(), "-l", "2", "-n", "512"]
    assert run_command(words) == 1
    assert "needs at least" in capsys.readouterr().err


def test_consumed_gradients_need_less_room() -> None:
    workload, backend = SiluWorkload(8, 32), FullDevice()
    strategies = [parse_strategy("remat")]
    consuming = workload.passing(consumes=True, replays=False)
    backend.left_bytes = consuming.needed_bytes(["remat"])
    check_fits(consuming, strategies, backend)
    with pytest.raises(OutOfMemoryError):
        check_fits(workload, strategies, backend)


def test_a_strategy_that_records_needs_room_for_the_recording() -> None:
    workload, backend = SiluWorkload(8, 32, 128), FullDevice()
    backend.left_bytes = workload.needed_bytes(["balanced"]) - 1
    check_fits(workload, [parse_strategy("remat")], backend)
    with pytest.raises(OutOfMemoryError):
        check_fits(workload, [parse_strategy("budget:1MiB")], backend)


def test_a_plan_that_does_not_fit_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "-q", "-n", "16", "-l", "2", "--budget", "1MiB", "--run"]
    assert run_command([*words, "--json"]) == 0
    needed_bytes = 3 * 1024 + json.loads(capsys.readouterr().out)["peak"]
    for left_bytes, code in ((needed_bytes, 0), (needed_bytes - 1, 1)):
        monkeypatch.setattr(memory_needed, "available_bytes", lambda left=left_bytes: left)
        assert run_command(words) == code
    message = f"the plan of n = 16, layers = 2 needs .*{needed_bytes} bytes.*are available"
    assert re.search(message, capsys.readouterr().err)
    assert run_command([*words, "--no-memory-check"]) == 0
