"""`ckpt check --module`: what checkpoints of a PyTorch module compute again, and what moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.module_check import block_name
from tests.backend_kit import NEEDS_TORCH
from tests.test_torch_blocks import LLAMA, NEEDS_TRANSFORMERS

CASES = Path(__file__).parent / "data" / "modules"
THREE = ("act_shared", "layer_shared", "block_shared", "list_shared", "subclass", "skip")
EQUAL = (*THREE, "outer", "sliced", "weights", "detached", "input_grad", "force", "encoder")

Checked = Callable[..., tuple[int, dict[str, dict[str, Any]], str]]


@pytest.fixture(scope="module")
def transformers_logs() -> None:
    """Its logger keeps the stderr that it meets first, which has to outlive a test's."""
    from transformers.utils import logging

    logging.get_logger()


@pytest.fixture
def checked(capsys: pytest.CaptureFixture[str]) -> Checked:
    """Exit code, checks by strategy, and stderr."""

    def run(module: str, *arguments: str) -> tuple[int, dict[str, dict[str, Any]], str]:
        command = ["check", "--threads", "1", "--json", "--module", module, *arguments]
        code = run_command(command)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        checks = json.loads(out)["checks"] if out else []
        return code, {check["strategy"]: check for check in checks}, err

    return run


def line_of(file: str, text: str) -> str:
    """`FILE:LINE` of the first line that holds `text`."""
    lines = (CASES / file).read_text().splitlines()
    return f"{CASES / file}:{1 + next(i for i, line in enumerate(lines) if text in line)}"


def test_a_block_is_named_by_its_first_and_last_module() -> None:
    assert block_name(()) == "(module)"
    assert block_name(("a",)) == "`a`"
    assert block_name(("l.0", "l.1", "l.2")) == "`l.0` to `l.2`"


@pytest.mark.slow
@NEEDS_TORCH
def test_spectral_norm_is_found_with_its_line_and_op(checked: Checked) -> None:
    """Its hook moves a vector in each call: what is computed again starts from another one."""
    code, checks, _ = checked(f"{CASES}/hooks.py:make")
    found = checks["remat"]
    assert (code, found["passed"], found["checkpoints"]) == (5, False, 3)
    place = found["wrong_values"][0]
    assert (place["block"], place["op"], place["index"]) == (["a"], "mv", 0)
    assert place["source"] == line_of("hooks.py", "return torch.tanh(self.c(")
    assert "spectral_norm.py:" in place["library"]
    assert place["difference"]["element"] == [0]
    assert [block for (block,) in found["wrong_blocks"]] == ["a", "b", "c"]
    assert found["gradients_apart"][0]["block"] == "a"
    assert found["wrong_gradients"][0][0] == found["gradients_apart"][0]["parameter"]
    assert found["plain_agreement"]["gradient_relative"] == pytest.approx(0.32, abs=0.01)
    moved = {state["name"] for state in found["state"] if state["is_moved_again"]}
    assert {"a.weight_u", "a.weight_v"} <= moved


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    "name",
    [
        "hooks.py:stoch",
        "complex_weights.py:make",
        "moving.py:normed",
        "moving.py:dropping",
        "moving.py:cached",
        *(f"repeated.py:{name}" for name in EQUAL),
    ],
)
def test_what_a_checkpoint_may_compute_again_is_equal(checked: Checked, name: str) -> None:
    code, checks, _ = checked(f"{CASES}/{name}")
    found = checks["remat"]
    assert (code, found["passed"], found["wrong_gradients"]) == (0, True, [])
    assert (found["wrong_values"], found["other_ops"]) == ([], [])
    assert found["same_bits"] == found["compared"]


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "text", "op", "kind", "state"),
    [
        ("moving.py:noisy", "torch.rand(x.shape, generator=NOISE)", "rand", "generator", "NOISE"),
        ("moving.py:counting", "x * (1 + self.calls % 2)", "mul", "attribute", "layers.0.calls"),
        (
            "moving.py:pythons",
            "x * random.random()",
            "mul",
            "random state",
            "of Python's `random`",
        ),
        ("complex_weights.py:make_imag", "(self.w.real * x).sum() +", "mul", "attribute", "p.s"),
    ],
)
def test_state_that_makes_values_wrong_is_named_with_the_op(
    checked: Checked, name: str, text: str, op: str, kind: str, state: str
) -> None:
    code, checks, _ = checked(f"{CASES}/{name}")
    found = checks["remat"]
    assert (code, found["passed"]) == (5, False)
    place = found["wrong_values"][0]
    assert (place["op"], place["source"]) == (op, line_of(name.partition(":")[0], text))
    (moved,) = [m for m in found["state"] if m["name"] == state]
    assert (moved["kind"], moved["is_apart"]) == (kind, True)
    assert bool(found["own_draws"]) == name.endswith("noisy")
    if name.endswith("counting"):
        assert moved["values"] == ["0", "1"]


@pytest.mark.slow
@NEEDS_TORCH
def test_running_statistics_move_twice_and_change_nothing(checked: Checked) -> None:
    _, checks, _ = checked(f"{CASES}/moving.py:normed")
    moved = {m["name"]: m for m in checks["remat"]["state"]}
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        found = moved[f"layers.2.norm.{name}"]
        assert (found["kind"], found["is_moved"], found["is_moved_again"]) == ("buffer", True, True)
        assert found["blocks"] == [["layers.2"]]


@pytest.mark.slow
@NEEDS_TORCH
def test_dropout_is_set_back(checked: Checked) -> None:
    _, checks, _ = checked(f"{CASES}/moving.py:dropping")
    (moved,) = checks["remat"]["state"]
    assert (moved["kind"], moved["name"]) == ("random state", "of PyTorch's own generator")
    assert (moved["is_moved"], moved["is_moved_again"], moved["is_apart"]) == (True, False, False)


@pytest.mark.slow
@NEEDS_TORCH
def test_groups_policies_and_the_older_kind_are_seen_too(checked: Checked) -> None:
    """A policy's products come back as they were saved: they are not computed again."""
    names = ("none", "remat:every=2", "reentrant", "remat", "remat:policy=dots_saveable")
    strategies = [word for name in names for word in ("-s", name)]
    code, checks, _ = checked(f"{CASES}/structures.py:decoder", "--engine", "torch", *strategies)
    assert (code, list(checks)) == (0, list(names))
    assert [check["checkpoints"] for check in checks.values()] == [0, 3, 6, 6, 6]
    compared = {name: check["compared"] for name, check in checks.items()}
    assert 0 < compared["remat:policy=dots_saveable"] < compared["remat"]
    assert all(check["same_bits"] == check["compared"] for check in checks.values())


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["own", "own_reentrant"])
def test_a_module_that_checkpoints_itself_is_checked_as_it_is(checked: Checked, name: str) -> None:
    code, checks, _ = checked(f"{CASES}/repeated.py:{name}")
    assert (code, list(checks)) == (0, ["own", "remat"])
    assert [check["checkpoints"] for check in checks.values()] == [3, 3]
    assert all(check["compared"] > 0 for check in checks.values())


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")
def test_what_cannot_be_checked_says_why_and_is_strict(checked: Checked) -> None:
    code, checks, _ = checked(f"{CASES}/repeated.py:jvp")
    assert (code, checks["remat"]["passed"]) == (1, None)
    assert "when it is computed again" in checks["remat"]["reason"]
    named = (f"{CASES}/structures.py:busy", "-s", "segments:1")
    assert checked(*named)[0] == 0
    assert checked(*named, "--strict")[0] == 4
    assert checked(f"{CASES}/repeated.py:compiled")[0] == 2
    code, _, error = checked(f"{CASES}/structures.py:busy", "--engine", "jax")
    assert (code, "needs --engine torch alone" in error) == (2, True)


@pytest.mark.slow
@NEEDS_TORCH
def test_the_page_names_block_op_line_and_what_moves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "--threads", "1", "--module", f"{CASES}/hooks.py:blocks"]) == 5
    page = capsys.readouterr().out
    where = line_of("hooks.py", "return torch.tanh(self.f(x))")
    assert f"block `l.0`, in `l.0.f`, op 0 (aten.mv) at {where} (torch/nn/utils/" in page
    assert "buffers `l.0.f.weight_u`" in page or "buffers `l.0.f.weight_v`" in page
    assert "worst: " in page


@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_TRANSFORMERS
@pytest.mark.parametrize(("use_cache", "others"), [(True, 8), (False, 0)])
def test_a_cache_among_the_arguments_grows_when_it_is_computed_again(
    transformers_logs: None, tmp_path: Path, checked: Checked, use_cache: bool, others: int
) -> None:
    """Keys and values of four layers; the gradients stay."""
    (tmp_path / "llama.py").write_text(
        f"{LLAMA}\n\ndef one():\n    return make(use_cache={use_cache})\n"
    )
    code, checks, _ = checked(f"{tmp_path}/llama.py:one")
    found = checks["remat"]
    assert (code, found["wrong_gradients"], found["wrong_values"]) == (0, [], [])
    assert [place["op"] for place in found["other_ops"]] == ["cat"] * others


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning")
def test_a_kind_that_loses_every_gradient_is_a_row_with_the_reason(
    capsys: pytest.CaptureFixture[str], checked: Checked
) -> None:
    """The older kind gives no gradient where no argument of a block needs one."""
    module = f"{CASES}/moving.py:dropping"
    code, checks, _ = checked(module, "-s", "reentrant")
    reason = checks["reentrant"]["reason"]
    assert (code, checks["reentrant"]["failed"]) == (1, True)
    assert reason.startswith("no gradient flows to its output")
    arguments = ["--engine", "torch", "--module", module, "-s", "reentrant", "--json", "-q"]
    assert run_command(["saved", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["strategies"][0]["reason"] == reason
    assert run_command(["run", "--reps", "1", *arguments]) == 0  # it is no counterpart there
    rows = json.loads(capsys.readouterr().out)["strategies"]
    assert rows[1]["reason"] == reason
