"""What is found by its name, without loading the rest: names, files and what they register."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptcli.workloads as package
from ckptcli.backends.registry import libraries, open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy, registry
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads import registry as workloads


def test_a_workload_is_registered_by_the_file_of_its_name() -> None:
    assert len(workloads.workload_names()) >= 5
    for openers in (workloads._OPENERS, workloads._EXPERIMENTS):
        for name, opener in openers.items():
            assert opener.__module__ == f"ckptcli.workloads.{name}"


def test_a_file_that_is_no_workload_is_no_name() -> None:
    workloads.workload_names()
    names = {path.stem for path in Path(package.__path__[0]).glob("[a-z]*.py")}
    others = names - {*workloads._OPENERS, *workloads._EXPERIMENTS}
    assert "registry" in others
    for name in others:
        with pytest.raises(UnknownNameError, match=f"`{name}`"):
            workloads.open_workloads(name, WorkloadOptions())


@pytest.mark.parametrize("name", ["registry", "base", "nobody"])
def test_a_file_that_is_no_strategy_is_no_name(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"`{name}`"):
        parse_strategy(name)


def test_every_strategy_is_found_by_its_name() -> None:
    needs = {"segments": "segments:2", "budget": "budget:1MiB", "revolve": "revolve:2"}
    for name, strategy in registry().items():
        if name == "plan":  # which reads a file
            continue
        text = needs.get(name, name)
        assert type(parse_strategy(text)) is strategy


def test_a_library_that_is_not_installed_is_told_from_a_broken_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = libraries()["cupy"]

    def refused(device: str) -> object:
        raise ImportError("no such driver")

    monkeypatch.setattr(type(library), "devices", lambda self: [])
    monkeypatch.setattr(type(library), "device_names", ("cpu",))
    monkeypatch.setattr(library, "open", refused, raising=False)
    monkeypatch.setattr(type(library), "packages", ("no-such-distribution",))
    with pytest.raises(UsageError, match="needs CuPy, which is not installed"):
        open_backend("cupy")
    monkeypatch.setattr(type(library), "packages", ("numpy",))
    with pytest.raises(UsageError, match="CuPy cannot be loaded: no such driver"):
        open_backend("cupy")
