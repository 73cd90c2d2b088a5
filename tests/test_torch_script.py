"""`ckptcli.torch` as a training script and its tests use it."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckptcli.torch
from ckptcli import Plan
from ckptcli.cli.main import run_command
from ckptcli.errors import MissingLibraryError, ProgramError, UnknownNameError, UsageError
from ckptcli.measure.record_json import record_object
from tests.backend_kit import NEEDS_TORCH
from tests.test_torch_step import STEPS, made
from tests.torch_modules import profiled

SHORT = Plan(reps=2)
FIGURES = (
    "saved_bytes",
    "saved_tensors",
    "ledger_peak_bytes",
    "optimizer_bytes",
    "phases",
    "peak_live",
)


def test_its_names_are_there() -> None:
    assert dir(ckptcli.torch) == ["Step", "auto_checkpoint", "ledger", "profile", "render"]
    with pytest.raises(AttributeError, match="has no attribute 'profil'"):
        ckptcli.torch.profil  # noqa: B018


def test_without_pytorch_a_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (lambda: ckptcli.torch.profile(None), ckptcli.torch.ledger):
        with pytest.raises(MissingLibraryError, match="engine `torch` needs torch, which cannot"):
            call()


def states() -> list[Any]:
    import torch

    return [
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        np.random.get_state()[1].tobytes(),  # type: ignore[index]
    ]


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["instance", "keywords", "accumulated"])
def test_a_profile_is_the_record_of_the_command(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Of a step in a file, and of the same at hand; what is at hand stays as it is."""
    command = profiled(capsys, f"{STEPS}:{name}", "-q", "--threads", "1")["strategies"]
    step = made(name)
    before = [p.detach().clone() for p in step.module.parameters()]
    random_states = states()
    record = ckptcli.torch.profile(step, plan=SHORT)
    assert states() == random_states
    for own, was in zip(step.module.parameters(), before):
        assert own.equal(was)
        assert own.grad is None
    if name == "instance":
        assert not step.optimizer.state
    for row, expected in zip(record_object(record)["strategies"], command, strict=True):
        for figure in FIGURES:
            assert row[figure] == expected[figure], figure
        assert row["agreement"]["loss"] == expected["agreement"]["loss"]


@pytest.mark.slow
@NEEDS_TORCH
def test_a_record_is_printed_as_the_command_prints_it() -> None:
    """But for the line that measures again, which a script does not have."""
    step = made("trained")
    record = ckptcli.torch.profile(
        step.module,
        step.args,
        loss=step.loss,
        batch=step.batch,
        optimizer=step.optimizer,
        strategies=["remat", "remat:every=2"],
        plan=SHORT,
    )
    text = ckptcli.torch.render(record, width=100)
    assert [row.strategy for row in record.rows] == ["none", "remat", "remat:every=2"]
    assert "\nremat: " in text
    assert "Sequential with 6,666 parameters" in text
    assert max(map(len, text.splitlines()[:12])) <= 100
    assert "ckpt run" not in text


@pytest.mark.slow
@NEEDS_TORCH
def test_what_cannot_be_profiled_says_why() -> None:
    import torch

    with pytest.raises(UnknownNameError, match="unknown strategy `remta`"):
        ckptcli.torch.profile(torch.nn.Linear(2, 2), torch.rand(2, 2), strategies=["remta"])
    with pytest.raises(ProgramError, match=r"`Linear` failed.*mat1 and mat2"):
        ckptcli.torch.profile(torch.nn.Linear(2, 2), torch.rand(2, 3))


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "is_named"),
    [("trained", True), ("instance", False), ("low_rank", False), ("held", True)],
)
def test_a_ledger_around_a_loop_of_the_users_is_the_account_of_a_profile(
    name: str, is_named: bool
) -> None:
    """To the byte, what is live at the peak too, whether the model is named or found."""
    import torch

    step = made(name)
    record = ckptcli.torch.profile(step, strategies=["none"], plan=SHORT)
    expected = record.rows[0].memory
    assert expected is not None
    trainable = [p for p in step.module.parameters() if p.requires_grad]
    optimizer = step.optimizer
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        optimizer = optimizer(trainable)

    def train() -> None:
        output = step.module(*step.arguments, **step.kwargs)
        loss = step.loss(output, step.given)
        if not step.keep_output:
            del output
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        for parameter in trainable:
            parameter.grad = None

    train()
    with ckptcli.torch.ledger(*([step.module] if is_named else [])) as account:
        train()
    assert account.peak == expected.ledger_peak_bytes
    live = account.live_at_peak()
    assert live is not None
    assert expected.peak_live is not None
    assert live.bytes_by_why == expected.peak_live.bytes_by_why
    assert live.module == expected.peak_live.module
    assert sum(saved.bytes for saved in account.saved()) == expected.saved_bytes
    assert sum(total.bytes for total in account.by_module()) == expected.saved_bytes
    assert max(moment.bytes for moment in account.timeline()) == account.peak
    phases = {moment.phase for moment in account.timeline()}
    assert phases >= {"forward", "backward"}
    train()  # what the account counted goes, and it stays as it is
    assert account.peak == expected.ledger_peak_bytes


@pytest.mark.slow
@NEEDS_TORCH
def test_a_ledger_sees_a_checkpoint_of_the_users_own() -> None:
    """Lines are those of the script; a recomputation is told as such."""
    import torch
    from torch.utils.checkpoint import checkpoint

    model, x = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU()), torch.rand(8, 32)
    with ckptcli.torch.ledger(model) as plain:
        model(x).sum().backward()
    with ckptcli.torch.ledger(model) as spared:
        checkpoint(model, x, use_reentrant=False).sum().backward()
    assert [saved.op for saved in plain.saved()] == ["addmm"]
    assert plain.saved()[0].source.startswith(f"{__file__}:")
    assert (plain.by_module()[0].key, plain.by_module()[0].bytes) == ("0", 8 * 64 * 4)
    assert list(spared.saved()) == []
    assert {moment.phase for moment in spared.timeline()} == {"forward", "recompute", "backward"}
    for account in (plain, spared):
        assert account.timeline()[0].op == "addmm"


@pytest.mark.slow
@NEEDS_TORCH
def test_a_gradient_that_is_asked_for_begins_a_backward_pass_too() -> None:
    import torch

    model, x = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU()), torch.rand(8, 32)
    for keywords in (False, True):
        with ckptcli.torch.ledger(model) as account:
            loss, weights = model(x).sum(), list(model.parameters())
            if keywords:
                torch.autograd.grad(outputs=loss, inputs=weights)
            else:
                torch.autograd.grad(loss, weights)
        assert [(saved.op, saved.bytes) for saved in account.saved()] == [("addmm", 8 * 64 * 4)]
        assert account.timeline()[-1].phase == "backward"


@pytest.mark.slow
@NEEDS_TORCH
def test_pytorch_is_afterwards_as_it_was() -> None:
    import torch
    from torch.nn.modules import module as modules

    backward, hooks = torch.autograd.backward, len(modules._global_forward_pre_hooks)
    with pytest.raises(KeyError), ckptcli.torch.ledger():
        raise KeyError
    assert torch.autograd.backward is backward
    assert len(modules._global_forward_pre_hooks) == hooks


@pytest.mark.slow
@NEEDS_TORCH
def test_the_example_of_the_page_is_a_test_that_passes(tmp_path: Path) -> None:
    """In pytest, in a process of its own, as a user runs it."""
    page = (Path(__file__).parents[1] / "docs" / "pytorch.md").read_text()
    (example,) = [
        block.partition("\n```")[0]
        for block in page.split("```python\n")[1:]
        if "def test_" in block.partition("\n```")[0]
    ]
    (tmp_path / "test_memory.py").write_text(example)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_memory.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert run_command(["explain", "peak"]) == 0


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("file", ["structures.py", "hooks.py"])
def test_any_structure_has_the_account_that_the_command_gives_it(file: str) -> None:
    """Lists, loops, stages, dropouts, hooks."""
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_memory import module_pass
    from ckptcli.peers.torch_module import ModuleNetwork

    path = STEPS.with_name(file)
    names = re.findall(r"^def (\w+)\(\)", path.read_text(), flags=re.MULTILINE)
    compared = 0
    for name in names[::2]:
        try:
            user = load_module(ModuleRequest(f"{path}:{name}"), 0)
            network = ModuleNetwork(user, 0)
            known = module_pass(network).memory
        except UsageError:  # a case that is there to be refused
            continue
        for modules in ([user.module], []):
            with ckptcli.torch.ledger(*modules) as account:
                network.backward(network.forward())
            assert account.peak == known.ledger_peak_bytes, name
            assert sum(saved.bytes for saved in account.saved()) == known.saved_bytes, name
            compared += 1
    assert compared >= 4
