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
from ckptcli.measure.subject import gradients_of
from ckptcli.torch import Step
from tests.backend_kit import NEEDS_TORCH
from tests.torch_modules import profiled

STEPS = Path(__file__).parent / "data" / "modules" / "steps.py"
FAILING = STEPS.read_text().partition("# the line that fails")[0].count("\n") + 1
LOSSES = ["mapping", "keywords", "from_input", "tried"]


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
def test_a_module_in_evaluation_mode_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Its framework's switch is on and does nothing there, which no size of blocks would mend."""
    words = ("-q", "-s", "remat", "-s", "framework")
    _, remat, trained = profiled(capsys, f"{STEPS}:switched", *words)["strategies"]
    assert trained["saved_bytes"] == remat["saved_bytes"]
    data = profiled(capsys, f"{STEPS}:evaluated", *words)
    assert sum("the module is in evaluation mode" in text for text in data["warnings"]) == 1
    assert data["strategies"][2]["reason"] == (
        "`gradient_checkpointing_enable` of the module makes no checkpoint in evaluation mode: "
        "call its `train()`"
    )


def network_of(name: str) -> Any:
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_module import ModuleNetwork

    return ModuleNetwork(load_module(ModuleRequest(f"{STEPS}:{name}"), 0), 0)


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["trained", "instance", "accumulated", "low_rank", "criterion"])
def test_a_step_moves_parameters_as_a_script_does_and_is_undone(name: str) -> None:
    """Bit for bit what a loop in plain PyTorch gives, which ckpt has no part in."""
    import torch

    step, network = made(name), network_of(name)
    modules = [step.module, *([step.loss] if isinstance(step.loss, torch.nn.Module) else [])]
    trainable = [p for part in modules for p in part.parameters() if p.requires_grad]
    is_made = isinstance(step.optimizer, torch.optim.Optimizer)
    optimizer = step.optimizer if is_made else step.optimizer(trainable)
    for _ in range(step.accumulate):
        loss = step.loss(step.module(*step.arguments), step.given) / step.accumulate
        loss.backward()
    optimizer.step()

    before = [p.detach().clone() for p in network.user.module.parameters()]
    network.step(gradients_of(network))
    for expected, found in zip(trainable, network.user.parameters(), strict=True):
        assert torch.equal(expected, found)
    network.put_back()
    for expected, found in zip(before, network.user.module.parameters()):
        assert torch.equal(expected, found)
    assert all(p.grad is None for p in network.user.module.parameters())


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["instance", "accumulated", "clipped"])
def test_every_strategy_is_trained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    none, remat = profiled(capsys, f"{STEPS}:{name}", "-q")["strategies"]
    for row in (none, remat):
        phases = [row[f"{phase}_s"]["samples"] for phase in ("forward", "backward", "step")]
        for *parts, total in zip(*phases, row["total_s"]["samples"]):
            assert sum(parts) == pytest.approx(total)
            assert min(parts) > 0
    assert (remat["agreement"]["loss_ulp"], remat["agreement"]["gradient_ulp"]) == (0.0, 0.0)


@pytest.mark.slow
@NEEDS_TORCH
def test_a_loss_with_parameters_is_part_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    """Its parameter and its buffer count, and so does its gradient."""
    plain = profiled(capsys, f"{STEPS}:step", "-q")["strategies"]
    rows = profiled(capsys, f"{STEPS}:criterion", "-q")["strategies"]
    for row, other in zip(rows, plain):
        assert row["params_input_bytes"] == other["params_input_bytes"] + 4 + 10 * 4
        found, known = phases_of(row)["backward"], phases_of(other)["backward"]
        for phase, more in ((found["after_bytes"], 4), (known["after_bytes"], 0)):
            assert phase["gradient of a parameter"] == 26664 + more
    user = network_of("criterion").user
    assert user.parameter_names()[-1] == "loss.scale"


@pytest.mark.slow
@NEEDS_TORCH
def test_strategies_share_parameters_unless_a_pass_moves_them() -> None:
    """A clamp in a hook is such a pass."""
    from ckptcli.peers.torch_loading import another
    from ckptcli.peers.torch_trial import tried

    for name, shares in (("trained", True), ("clipped", False)):
        user = network_of(name).user
        can_share = tried(user, 0).can_share
        other = another(user, 0, can_share)
        for own, same in zip(user.module.parameters(), other.module.parameters()):
            assert own is not same
            assert (own.data_ptr() == same.data_ptr()) == shares
        assert (other.optimizer is user.optimizer) == can_share == shares


@pytest.mark.slow
@NEEDS_TORCH
def test_micro_batches_on_the_command_line_go_before_those_of_the_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each takes as long as one, and what is known of the gradient stays."""
    once = profiled(capsys, f"{STEPS}:step", "-q")
    data = profiled(capsys, f"{STEPS}:accumulated", "-q", "--accumulate", "2")
    assert data["config"]["accumulate"] == 2
    for row, other in zip(data["strategies"], once["strategies"]):
        assert row["saved_bytes"] == other["saved_bytes"]
        assert row["agreement"]["loss"] == pytest.approx(other["agreement"]["loss"], rel=1e-6)
        assert (other["step_s"], other["optimizer_bytes"]) == (None, None)
        assert list(phases_of(other)) == ["forward", "backward"]


def bytes_of(network: Any) -> int:
    """Of all parameters that are trained."""
    return int(sum(p.numel() * 4 for p in network.parameters() if p.requires_grad))


def phases_of(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By name; what they sum to is checked against the other figures of the row."""
    found = {phase["phase"]: phase for phase in row["phases"]}
    for name, known in (("forward", "after_forward_bytes"), ("backward", "after_backward_bytes")):
        assert sum(found[name]["after_bytes"].values()) == row[known]
    own_bytes = row["params_input_bytes"] + (row["optimizer_bytes"] or 0)
    assert sum(found["forward"]["before_bytes"].values()) == own_bytes
    assert max(phase["peak_bytes"] for phase in found.values()) == row["ledger_peak_bytes"]
    return found


@pytest.mark.slow
@NEEDS_TORCH
def test_phases_of_a_step_are_what_is_worked_out_by_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """AdamW has two moments as large as the parameters, and a count of 4 bytes for each."""
    module = made("trained").module
    parameters, tensors = bytes_of(module), len(list(module.parameters()))
    for row in profiled(capsys, f"{STEPS}:trained", "-q")["strategies"]:
        found = phases_of(row)
        assert row["optimizer_bytes"] == 2 * parameters + 4 * tensors
        for phase in found.values():
            for live in (phase["before_bytes"], phase["after_bytes"]):
                assert live["parameter"] == parameters
                assert live["optimizer"] == row["optimizer_bytes"]
        assert "gradient of a parameter" not in found["forward"]["after_bytes"]
        assert found["backward"]["after_bytes"]["gradient of a parameter"] == parameters
        assert found["step"]["before_bytes"] == found["backward"]["after_bytes"]
        assert found["step"]["after_bytes"] == found["step"]["before_bytes"]
        assert found["step"]["peak_bytes"] > sum(found["step"]["before_bytes"].values())


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "forward_has", "state"),
    [("accumulated", 1, 2), ("low_rank", 0, 0)],
)
def test_gradients_are_there_from_the_second_micro_batch_on(
    capsys: pytest.CaptureFixture[str], name: str, forward_has: int, state: int
) -> None:
    """What is frozen has neither gradient nor state; SGD alone keeps nothing."""
    trained_bytes = bytes_of(network_of(name).user.module)
    for row in profiled(capsys, f"{STEPS}:{name}", "-q")["strategies"]:
        found = phases_of(row)
        after = found["forward"]["after_bytes"].get("gradient of a parameter", 0)
        assert after == forward_has * trained_bytes
        assert found["backward"]["after_bytes"]["gradient of a parameter"] == trained_bytes
        assert row["optimizer_bytes"] // trained_bytes == state


LARGE = """
import torch
from torch import nn


def make():
    blocks = [nn.Sequential(nn.Linear(1600, 1600), nn.ReLU()) for _ in range(8)]
    return nn.Sequential(*blocks), torch.rand(4, 1600)
"""


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sizes are in KiB on Linux")
def test_rows_need_one_model_and_one_set_of_gradients(tmp_path: Path) -> None:
    """One is made and copied at once, and two sets are there while they are compared; with a model
    and gradients for each of five rows it would be ten.
    """
    (tmp_path / "large.py").write_text(LARGE)
    words = ["run", "--module", f"{tmp_path / 'large.py'}:make", "--reps", "1", "--warmup", "0"]
    words += ["--threads", "1", "-q"]
    for strategy in ("remat", "remat:every=2", "sqrt", "segments:4"):
        words += ["-s", strategy]
    program = (
        "import resource, torch; from ckptcli.cli.main import run_command;"
        "largest = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"before = largest(); assert run_command({words!r}) == 0; print(largest() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model_bytes = 8 * (1600 * 1600 + 1600) * 4
    assert int(done.stdout.split()[-1]) * 1024 < 4 * model_bytes


@pytest.mark.slow
@NEEDS_TORCH
def test_the_screen_has_a_column_for_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "run",
        "--module",
        f"{STEPS}:trained",
        "--reps",
        "6",
        "--width",
        "160",
        "-s",
        "none",
    ]
    assert run_command(arguments) == 0
    out = capsys.readouterr().out
    assert " step " in out.partition("\nstrategy ")[2].partition("\n")[0]
    assert ", step " in out
    assert "\nnone       forward " in out  # the table of the phases


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
        ("broken", 1, "steps.py:"),
        ("foreign", 2, "moves 1 tensor that the module does not have as a parameter"),
        ("stepless", 2, "the optimizer of"),
        ("no_module", 2, "a step whose module is of type function"),
        ("three", 2, "gives a tuple of Sequential, Tensor, MSELoss, not (module, input)"),
        ("swapped", 2, "gives a tuple of Tensor, Sequential, not (module, input)"),
        ("output_alone", 2, "called as loss(output, batch), which it does not take: too many"),
        ("named", 2, "the optimizer of"),
        ("computed", 2, "was computed under a gradient, which one pass alone can go back through"),
        ("listed", 1, "(Linear), given list of float32 ["),
        ("cut", 2, "its reentrant checkpoints give no gradient where no input of theirs"),
        ("cut_loss", 2, "its reentrant checkpoints give no gradient where no input of theirs"),
    ],
)
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
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
