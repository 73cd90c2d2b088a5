"""A program that cannot fit is refused with what all that is there at once needs."""

from __future__ import annotations

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


@pytest.mark.parametrize("command", ["run", "log", "saved", "check"])
def test_every_command_refuses_what_cannot_fit(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 2**20)
    words = [command, "-l", "2", "-n", "512"]
    assert run_command(words) == 1
    assert "needs at least" in capsys.readouterr().err
