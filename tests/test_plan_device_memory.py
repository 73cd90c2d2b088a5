"""`ckpt plan --device-memory`: the same plan as the budget that remains, and what is beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.options.optimizers import states_of
from tests.backend_kit import NEEDS_TORCH
from tests.test_module_plan import SMALL as MODULES

N, LAYERS = 16, 3
WEIGHTS_BYTES = LAYERS * N * N * 4
BASE_BYTES = WEIGHTS_BYTES + N * N * 4
BUDGET_BYTES = 9 * 1024
PROGRAM = ("plan", "-q", "--n", str(N), "--layers", str(LAYERS))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert run_command([*words, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out, object_hook=untimed)
    return found


def untimed(values: dict[str, Any]) -> dict[str, Any]:
    """Without what a clock said, which is another in each recording."""
    kept = {key: value for key, value in values.items() if not key.endswith("time_s")}
    if isinstance(kept.get("reasons"), list):
        kept["reasons"] = [re.sub(r", [\d.]+(ns|µs|ms|s)$", "", text) for text in kept["reasons"]]
    return kept


@pytest.mark.parametrize(
    ("words", "states"),
    [((), 0), *((("--optimizer", n), k) for n, k in (("sgd", 0), ("momentum", 1), ("adam", 2)))],
)
def test_the_plan_is_that_of_the_budget_that_remains(
    words: tuple[str, ...], states: int, capsys: pytest.CaptureFixture[str]
) -> None:
    device_bytes = BASE_BYTES + states * WEIGHTS_BYTES + BUDGET_BYTES
    found = planned(capsys, *PROGRAM, "--device-memory", str(device_bytes), *words)
    expected = planned(capsys, *PROGRAM, "--budget", str(BUDGET_BYTES))
    assert found.pop("device_memory") == {
        "device_bytes": device_bytes,
        "base_bytes": BASE_BYTES,
        "optimizer": words[1] if words else None,
        "optimizer_bytes": states * WEIGHTS_BYTES,
        "budget_bytes": BUDGET_BYTES,
    }
    assert expected.pop("device_memory") is None
    assert found == expected


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize(("name", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_what_an_optimizer_adds_is_what_pytorchs_keeps(name: str, states: int) -> None:
    import torch

    from ckptcli.peers.torch_optimizer import NAMED

    weight = torch.nn.Parameter(torch.rand(N, N))
    optimizer = NAMED[name]([weight])
    weight.sum().backward()
    optimizer.step()
    kept = [v for v in optimizer.state[weight].values() if torch.is_tensor(v) and v.dim()]
    assert sum(value.nbytes for value in kept) == states * weight.nbytes
    assert states_of(name) == states


def test_the_screen_says_what_the_device_has_and_what_remains(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--optimizer", "adam", "--run", "--width", "300")
    assert run_command([*PROGRAM, "--device-memory", "19KiB", *words]) == 0
    screen = capsys.readouterr().out
    assert (
        "--device-memory of 19.0 KiB (19456 bytes) has 4.0 KiB of parameters and input and 6.0 KiB "
        "of adam's state beside a pass; the budget is what remains, 9.0 KiB (9216 bytes)"
    ) in screen
    assert "as predicted" in screen
    assert run_command([*PROGRAM, "--device-memory", "5KiB", "--width", "300"]) == 1
    screen = capsys.readouterr().out
    assert "parameters and input and no optimizer's state beside a pass" in screen
    least = planned(capsys, *PROGRAM, "--budget", "1KiB", code=1)["min_budget"] + BASE_BYTES
    assert f"as --device-memory that is {least / 1024:.1f} KiB ({least} bytes)" in screen
    assert planned(capsys, *PROGRAM, "--device-memory", str(least))["feasible"]
    planned(capsys, *PROGRAM, "--device-memory", str(least - 1), code=1)


def test_a_device_with_no_room_for_a_pass_ends_with_1_and_names_the_parts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (*PROGRAM, "--device-memory", "10KiB", "--optimizer", "adam")
    assert run_command([*words, "--width", "300"]) == 1
    assert (
        "--device-memory of 10.0 KiB (10240 bytes) leaves nothing for a pass: 4.0 KiB of "
        "parameters and input and 6.0 KiB of adam's state are there before it"
    ) in capsys.readouterr().out
    found = planned(capsys, *words, code=1)
    assert not found["feasible"]
    assert found["device_memory"]["budget_bytes"] == found["budget"] == 0


def test_a_graph_file_of_a_program_has_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--device-memory", "19KiB", "--optimizer", "adam")
    found = planned(capsys, *PROGRAM, *words, "--export-graph", "graph.json")
    assert planned(capsys, "plan", "-q", "--graph", "graph.json", *words) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device-memory", "1MB", "--budget", "1MB"), "--budget and --device-memory are two"),
        (("--device-memory", "1MB", "--budget", "1MB", "--module", "n.py:m"), "are two limits"),
        (("--device-memory", "0"), "--device-memory `0` is no size above 0"),
        (("--device-memory", "much"), "--device-memory `much` is no size"),
        (("--device-memory", "1MB", "--graph", "dag.json"), "has a problem of the kind dag"),
    ],
)
def test_what_is_no_limit_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [["a", 1, 1, []]]
    Path("dag.json").write_text(json.dumps({"kind": "dag", "nodes": nodes, "goals": ["a"]}))
    assert run_command(["plan", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_device_of_the_settings_gives_way_to_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    expected = planned(capsys, *PROGRAM, "--budget", "9KiB")
    Path("burn.toml").write_text('[ckpt]\ndevice-memory = "13KiB"\n', encoding="utf-8")
    assert planned(capsys, *PROGRAM, "--budget", "9KiB") == expected
    assert planned(capsys, *PROGRAM)["device_memory"]["device_bytes"] == 13 * 1024
    assert planned(capsys, *PROGRAM)["budget"] == 9 * 1024


def test_an_optimizer_without_a_device_is_told_to_have_no_effect(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word for word in PROGRAM if word != "-q"]
    assert run_command([*words, "--budget", "9KiB", "--optimizer", "adam"]) == 0
    assert "--optimizer has no effect without --device-memory" in capsys.readouterr().err


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("name", ["make", "stepped"])
def test_a_module_counts_its_own_optimizer(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(MODULES, encoding="utf-8")
    words = ("plan", "-q", "--module", f"net.py:{name}", "--fake")
    expected = planned(capsys, *words, "--budget", "90KiB")
    before_bytes = expected["covers"]["above_bytes"]
    device = str(before_bytes + 90 * 1024)
    found = planned(capsys, *words, "--device-memory", device)
    limit = found.pop("device_memory")
    assert limit["base_bytes"] + limit["optimizer_bytes"] == before_bytes
    assert (limit["optimizer_bytes"] > 0) == (name == "stepped")
    assert expected.pop("device_memory") is None
    assert found == expected
    assert run_command([*words, "--device-memory", "20KiB", "--width", "300"]) == 1
    screen = capsys.readouterr().out
    assert "of parameters, buffers and input and " in screen
    assert "leaves nothing for a pass" in screen
    assert "as --device-memory that is" in screen
