"""A module with the loss that its user trains it with."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcli.cli.main import run_command
from ckptcli.torch import Step
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

STEPS = Path(__file__).parent / "data" / "modules" / "steps.py"
FAILING = STEPS.read_text().partition("# the line that fails")[0].count("\n") + 1
LOSSES = ["step", "mapping", "keywords", "from_input"]


def made(name: str) -> Any:
    """What `MAKE` gives, to be run in plain PyTorch."""
    spec = importlib.util.spec_from_file_location("steps", STEPS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name)()
    return Step(**found) if isinstance(found, dict) else found


def test_a_step_says_what_the_loss_gets() -> None:
    assert Step(None, 3).given == 3
    assert Step(None, (3, 4)).given == (3, 4)
    assert Step(None, (), {"x": 3}).given == {"x": 3}
    assert Step(None, 3, {"x": 4}).given == ((3,), {"x": 4})
    assert Step(None, 3, batch=5).given == 5
    assert Step(None, [3]).arguments == ([3],)


def test_a_step_is_named_without_pytorch() -> None:
    """Nor does `import ckptcli` load anything of it."""
    program = (
        "import ckptcli, sys; early = [m for m in sys.modules if m.startswith('ckptcli.')];"
        "from ckptcli.torch import Step; Step(None);"
        "print(sorted(early), 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['ckptcli.version'] False False\n"


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_the_users(capsys: pytest.CaptureFixture[str], name: str) -> None:
    step = made(name)
    expected = step.loss(step.module(*step.arguments, **step.kwargs), step.given)
    none, remat = profiled(capsys, f"{STEPS}:{name}", "-q")["strategies"]
    assert np.float32(none["agreement"]["loss"]) == np.float32(expected.item())
    assert (remat["agreement"]["loss_ulp"], remat["agreement"]["gradient_ulp"]) == (0.0, 0.0)


@pytest.mark.slow
@NEEDS_TORCH
def test_an_output_that_is_kept_is_in_the_account(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of its cross entropy needs the output of the last layer, 64 x 10 floats."""
    let_go = profiled(capsys, f"{STEPS}:step", "-q")["strategies"]
    data = profiled(capsys, f"{STEPS}:held", "-q")
    for row, other in zip(data["strategies"], let_go):
        assert row["saved_bytes"] - other["saved_bytes"] == 64 * 10 * 4
    (told,) = [text for text in data["warnings"] if "keep_output" in text]
    assert told.startswith("the output, 2.5 KiB, is held until the backward pass is done")


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("vector", 2, "is a float32 tensor of shape [64]"),
        ("number", 2, "is of type float\n"),
        ("detached", 2, "a float32 tensor of shape [] that no gradient flows to"),
        ("fails", 1, f"steps.py:{FAILING} (`return Step(net()"),
        ("misspelt", 2, "a mapping with `arguments`, which no step has"),
        ("headless", 2, "a mapping with no `module`"),
        ("no_module", 2, "a step whose module is of type function"),
    ],
)
def test_a_step_that_has_no_loss(
    capsys: pytest.CaptureFixture[str], name: str, code: int, words: str
) -> None:
    for command in ("run", "saved", "check"):
        engine = [] if command == "check" else ["--engine", "torch"]
        assert run_command([command, *engine, "--module", f"{STEPS}:{name}"]) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert words in captured.err
        assert "Traceback" not in captured.err
