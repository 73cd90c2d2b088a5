"""`ckpt plan --module`: measured sets, the floor, and pasted code held against the ledger."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.units import UNKNOWN, size
from tests.backend_kit import NEEDS_TORCH
from tests.test_torch_blocks import CASES, LLAMA, NEEDS_TRANSFORMERS
from tests.torch_modules import profiled

pytestmark = [NEEDS_TORCH, pytest.mark.thinned(3)]

SMALL = """
import torch
from torch import nn


X = torch.rand(64, 64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = lambda: nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
        self.layers = nn.ModuleList(layer() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x.mean()


def make():
    return Net(), torch.rand(64, 16)


def stepped():
    return {"module": Net(), "args": torch.rand(64, 16), "optimizer": torch.optim.AdamW}


def leaves():
    return nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(64, 64), nn.GELU()))), X


def alone():
    return nn.Linear(4, 4), torch.rand(2, 4)


class Writing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        return self.inner(x.add_(1.0))


class Spread(nn.Module):
    def forward(self, x):
        return x.mean()


def depthwise():
    layers = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GELU()) for _ in range(3)]
    return nn.Sequential(*layers, Spread()), torch.rand(2, 8, 32, 32)


def inplace():
    layers = [nn.Sequential(nn.ReLU(inplace=True), nn.Linear(64, 64)) for _ in range(3)]
    return nn.Sequential(nn.Linear(64, 64), *layers), X


def deep():
    net = Net()
    net.layers.extend(nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16)) for _ in range(10))
    return net, torch.rand(8, 16)


def writing():
    blocks = [nn.Sequential(Writing()), nn.Sequential(nn.Linear(16, 16))]
    return nn.Sequential(nn.Linear(16, 16), *blocks), torch.rand(64, 16)
"""

ENCODER = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True) for _ in range(4)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.mean()


def make():
    return Encoder(), torch.rand(8, 128, 64)
"""

MODELS = """
import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
from transformers import ViTConfig, ViTForImageClassification

IDS = torch.arange(256).reshape(4, 64)
BATCH = {"input_ids": IDS, "labels": IDS}


def gpt2():
    config = GPT2Config(n_embd=64, n_layer=6, n_head=4, vocab_size=256, use_cache=False)
    return GPT2LMHeadModel(config).train(), BATCH


def vit():
    sizes = {"hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4}
    config = ViTConfig(**sizes, intermediate_size=256, image_size=64, patch_size=8)
    return ViTForImageClassification(config).train(), {"pixel_values": torch.rand(8, 3, 64, 64)}


def bert():
    sizes = {"hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4}
    config = BertConfig(**sizes, intermediate_size=256, vocab_size=256)
    return BertForMaskedLM(config).train(), BATCH
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SMALL)
    return "net.py:make"


def planned(
    capsys: pytest.CaptureFixture[str], module: str, *arguments: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["plan", "-q", "--json", "--module", module, *arguments]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def peak_of_pasted(module: str, code: str) -> int:
    """The ledger's peak of a fresh module behind the pasted code, above what is there before."""
    from ckptcli.measure.rounds import collector_off
    from ckptcli.measure.subject import whole_pass
    from ckptcli.peers.module_request import ModuleRequest
    from ckptcli.peers.torch_account import Account
    from ckptcli.peers.torch_account_pass import account_pass
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_module import ModuleNetwork

    user = load_module(ModuleRequest(module), 0)
    exec(code, {"model": user.module})
    network = ModuleNetwork(user, 0, has_own_checkpoints=True)
    whole_pass(network)  # what an optimizer sets up
    with collector_off(), Account() as account:
        memory = account_pass(account, network)
    assert memory.ledger_peak_bytes is not None
    assert memory.params_input_bytes is not None
    return memory.ledger_peak_bytes - memory.params_input_bytes - (memory.optimizer_bytes or 0)


def budgets_of(plan: dict[str, Any]) -> list[int]:
    """The peak of each set of the frontier but the first, which has no checkpoint."""
    return [point["peak"] for point in plan["frontier"][1:]]


def test_pasted_code_takes_what_is_planned(capsys: pytest.CaptureFixture[str], small: str) -> None:
    every = planned(capsys, small, "--pareto")
    middle = budgets_of(every)[-2]
    plan = planned(capsys, small, "--budget", str(middle))
    assert plan["peak"] == middle
    assert [snippet["way"] for snippet in plan["code"]] == [
        "a loop over the blocks",
        "apply_activation_checkpointing",
    ]
    for snippet in plan["code"]:
        assert peak_of_pasted(small, snippet["code"]) == plan["ledger_peak"]
    assert {point["strategy"] for point in every["frontier"]} >= {"none", plan["strategy"]}
    assert every["passes"] <= 2 * 3 + 10


def test_shapes_give_the_plan_of_a_real_run(capsys: pytest.CaptureFixture[str], small: str) -> None:
    real, fake = (planned(capsys, small, "--pareto", *more) for more in ((), ("--fake",)))
    assert [p["ledger_peak"] for p in fake["frontier"]] == [p["peak"] for p in fake["frontier"]]
    for point in (*real["frontier"], *fake["frontier"]):
        del point["peak"]  # what shapes do not tell: random states of checkpoints, and scratch
    assert fake["frontier"] == real["frontier"]
    assert (fake["covers"]["workspace"], real["covers"]["workspace"]) == (False, True)
    assert [block["time_s"] for block in fake["blocks"]] == [None] * 3
    flops = 3 * [2 * 64 * 16 * 64 * 2]
    assert [block["flops"] for block in fake["blocks"]] == flops


def test_shapes_alone_have_no_column_of_times(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    assert run_command(["plan", "--module", small, "--pareto", "--fake", "-q"]) == 0
    screen = capsys.readouterr().out
    (head,) = [line.split() for line in screen.splitlines() if line.startswith("block ")]
    assert head == ["block", "holds", "frees", "forward", "peak", "alone"]
    assert UNKNOWN not in screen


def test_below_the_floor_it_ends_with_1_and_says_what_is_there(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    least = planned(capsys, small, "--budget", "1KiB", code=1)["min_budget"]
    assert planned(capsys, small, "--budget", str(least))["peak"] == least
    assert planned(capsys, small, "--budget", str(least - 1), code=1)["min_budget"] == least
    assert run_command(["plan", "--module", small, "--budget", str(least - 1)]) == 1
    screen = capsys.readouterr().out
    assert "no set of blocks was found" in screen
    told = f"the smallest budget that one was found for is {size(least)} ({least} bytes)"
    assert told in screen
    assert "gradient of a parameter" in screen
    assert re.search(r"(in the backward of|while) `layers\.\d", flat(screen))
    assert "--blocks 'layers.*.*'` are parts of these" in flat(screen)


@pytest.mark.slow
def test_a_plan_that_is_run_takes_what_was_planned(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    assert run_command(["plan", "--module", small, "--budget", "90KiB", "--run"]) == 0
    screen = capsys.readouterr().out
    assert "as planned" in screen
    assert "gradients identical" in screen
    plan = planned(capsys, small, "--budget", "1MB", "--run")
    measured = plan["measured"]
    assert (plan["strategy"], measured["ledger_bytes"]) == ("none", plan["ledger_peak"])
    assert measured["peak_bytes"] == plan["peak"]


def test_the_screen_ends_with_code(capsys: pytest.CaptureFixture[str], small: str) -> None:
    assert run_command(["plan", "--module", small, "--budget", "90KiB"]) == 0
    screen = capsys.readouterr().out
    assert "a budget covers all that a step adds above 28.9 KiB of parameters" in screen
    assert " % of the forward's operations once more, by PyTorch's counter a budget" in flat(screen)
    assert "\nfor index in (0," in screen
    assert screen.endswith("check_fn=lambda module: module in chosen\n)\n")
    plan = planned(capsys, small, "--budget", "90KiB")
    words = ["run", "--module", small, "--memory-only", "-q", "--json", "-s", plan["strategy"]]
    assert run_command(words) == 0
    row = json.loads(capsys.readouterr().out)["strategies"][1]
    assert f"counts what is there before too: {size(row['peak_bytes'])}" in flat(screen)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_what_every_budget_buys_is_nothing_to_run(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    assert run_command(["plan", "--module", small, "--pareto", "--run", "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["measured"] is None
    assert "--run has no effect without a budget or a device" in found.err


def test_what_cannot_be_planned_is_refused(capsys: pytest.CaptureFixture[str], small: str) -> None:
    for arguments, reason in (
        (("--module", small), "there is nothing to plan for --module net.py:make"),
        (("--module", "net.py:alone", "--budget", "1"), "no child with a parameter"),
        (("--module", small, "--budget", "1", "--fake", "--cost", "time"), "needs times"),
        (("--module", small, "--budget", "1", "--fake", "--run"), "needs values"),
        (("--module", small, "--graph", "g.json", "--budget", "1"), "are two problems"),
        (("--module", small, "--budget", "many"), "--budget `many` is no size"),
    ):
        assert run_command(["plan", *arguments]) == 2
        assert reason in capsys.readouterr().err
    assert run_command(["plan", "--module", small, "--budget", "1MB", "--planner", "greedy"]) == 0
    assert "--planner has no effect on a module" in capsys.readouterr().err


def test_a_script_gets_the_plan_of_the_command_and_its_checkpoints(
    capsys: pytest.CaptureFixture[str], small: str, tmp_path: Path
) -> None:
    import torch

    from ckptcli.errors import PlanError, UsageError
    from ckptcli.torch import Step, auto_checkpoint, ledger

    expected = planned(capsys, small, "--budget", "90KiB")
    made: dict[str, Any] = {}
    exec(SMALL, made)
    model, x = made["make"]()
    state = torch.get_rng_state()
    plan = auto_checkpoint(model, x, "90KiB")
    assert torch.equal(torch.get_rng_state(), state)
    assert (plan.code, plan.strategy) == (expected["code"][0]["code"], expected["strategy"])
    model(x).backward()
    model.zero_grad()
    with ledger(model) as account:
        model(x).backward()
    assert account.peak - plan.base_bytes == plan.best.ledger_bytes == expected["ledger_peak"]
    all_bytes = plan.base_bytes + 90 * 1024
    on_device = auto_checkpoint(made["make"]()[0], x, device_memory=all_bytes)
    assert (on_device.budget, on_device.code) == (90 * 1024, plan.code)
    for limits in ({}, {"budget": 1, "device_memory": 1}):
        with pytest.raises(UsageError, match=r"budget (nor|and) device_memory"):
            auto_checkpoint(model, x, **limits)

    other, x = made["make"]()
    calls = dict(vars(other.layers[0]))
    step = Step(other, x, optimizer=torch.optim.AdamW)
    assert auto_checkpoint(other, step, 90 * 1024, apply=False).base_bytes > plan.base_bytes
    assert vars(other.layers[0]) == calls
    with pytest.raises(PlanError, match=r"no set of blocks of `Net` fits 1\.0 KiB"):
        auto_checkpoint(other, step, "1KiB")


@pytest.mark.slow
def test_a_block_that_cannot_be_computed_again_is_left_out(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    plan = planned(capsys, "net.py:writing", "--pareto", "--blocks", "[12]")
    first, second = plan["blocks"]
    assert "in-place" in first["refused"]
    assert first["peak_bytes"] is None
    assert second["refused"] == ""


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_module_of_which_no_block_can_be_computed_again_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["plan", "--module", "net.py:inplace", "--budget", "1KiB"]) == 1
    screen = flat(capsys.readouterr().out)
    assert "block `1` and 2 more blocks cannot be under a checkpoint: an in-place op" in screen
    assert "--blocks" not in screen


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_what_kernels_take_is_in_the_budget_as_in_the_row_of_a_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = planned(capsys, "net.py:depthwise", "--budget", "1GB")
    assert plan["peak"] > plan["ledger_peak"]
    words = ("--module", "net.py:depthwise", "--memory-only", "-q", "--json", "-s", "none")
    assert run_command(["run", *words]) == 0
    row = json.loads(capsys.readouterr().out)["strategies"][0]
    assert row["peak_bytes"] - row["params_input_bytes"] == plan["peak"]
    between = str(plan["ledger_peak"])
    none = planned(capsys, "net.py:depthwise", "--pareto")["frontier"][0]
    assert (none["strategy"], none["peak"]) == ("none", plan["peak"])
    less = planned(capsys, "net.py:depthwise", "--budget", between, code=1)
    assert plan["ledger_peak"] < less["min_budget"] <= plan["peak"]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_of_many_blocks_it_says_that_not_every_set_was_looked_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = planned(capsys, "net.py:make", "--budget", "1GB", "--fake")
    many = planned(capsys, "net.py:deep", "--budget", "1GB", "--fake")
    assert (few["limits"], many["proved_optimal"]) == ([], False)
    assert "another set may cost less" in many["limits"][0]
    assert run_command(["plan", "-q", "--module", "net.py:deep", "--budget", "1GB", "--fake"]) == 0
    assert many["limits"][0] in flat(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_a_named_optimizer_is_run_and_its_state_is_there(
    capsys: pytest.CaptureFixture[str], small: str, name: str, states: int
) -> None:
    plain = planned(capsys, small, "--pareto")["covers"]["above_bytes"]
    plan = planned(capsys, small, "--budget", "90KiB", "--optimizer", name)
    numbers = 6 * 2 * 4 if name == "adam" else 0  # how many steps there were, of each tensor
    state = plan["covers"]["above_bytes"] - plain
    assert state == states * (plain - 64 * 16 * 4) + numbers
    device = str(plan["covers"]["above_bytes"] + 90 * 1024)
    found = planned(capsys, small, "--device-memory", device, "--optimizer", name)
    assert found["device_memory"]["optimizer_bytes"] == state
    assert (found["strategy"], found["peak"]) == (plan["strategy"], plan["peak"])
    words = ["plan", "--module", "net.py:stepped", "--budget", "90KiB", "--optimizer", name]
    assert run_command(words) == 0
    assert "has an optimizer of its own" in capsys.readouterr().err


@pytest.mark.slow
def test_an_optimizer_is_in_what_is_there_before_and_an_export_is_the_object(
    capsys: pytest.CaptureFixture[str], small: str, tmp_path: Path
) -> None:
    plain = planned(capsys, small, "--pareto")["covers"]["above_bytes"]
    plan = planned(capsys, "net.py:stepped", "--budget", "90KiB", "--export", "plan.json")
    moments = 2 * (plain - 64 * 16 * 4)
    assert plan["covers"]["above_bytes"] - plain - moments == 6 * 2 * 4  # a number a tensor
    assert json.loads((tmp_path / "plan.json").read_text()) == plan
    assert peak_of_pasted("net.py:stepped", plan["code"][0]["code"]) == plan["ledger_peak"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decoder", "tuples", "busy", "wrapped", "stages", "encoding"])
def test_pasted_code_of_a_structure_takes_what_is_planned(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """By shapes: these are so small that the random state of a checkpoint is more than it saves."""
    module = f"{CASES}/structures.py:{name}"
    budgets = budgets_of(planned(capsys, module, "--pareto", "--fake"))
    for budget in {budgets[len(budgets) // 2], budgets[-1]}:
        plan = planned(capsys, module, "--budget", str(budget), "--fake")
        assert plan["peak"] <= budget
        for snippet in plan["code"]:
            assert peak_of_pasted(module, snippet["code"]) == plan["ledger_peak"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("hooks.py:make", ["apply_activation_checkpointing"]),  # a hook is in no forward
        ("repeated.py:subclass", ["a loop over the blocks"]),  # which asks for the blocks' class
        ("repeated.py:own_reentrant", []),
    ],
)
def test_code_that_takes_something_else_is_left_out(
    capsys: pytest.CaptureFixture[str], name: str, ways: list[str]
) -> None:
    module = f"{CASES}/{name}"
    least = planned(capsys, module, "--pareto", "--fake")["min_budget"]
    plan = planned(capsys, module, "--budget", str(least), "--fake")
    assert [snippet["way"] for snippet in plan["code"]] == ways
    for snippet in plan["code"]:
        assert peak_of_pasted(module, snippet["code"]) == plan["ledger_peak"]
    if not ways:
        words = ["plan", "-q", "--fake", "--module", module, "--budget", str(least)]
        assert run_command(words) == 0
        assert "no code to paste" in capsys.readouterr().out


@pytest.mark.slow
def test_a_sequential_of_leaves_is_called_in_pieces(
    capsys: pytest.CaptureFixture[str], small: str
) -> None:
    """And the strategy that is named takes the same under `ckpt run`."""
    plan = planned(capsys, "net.py:leaves", "--budget", "150KiB")
    (snippet,) = plan["code"]
    assert "nn.Sequential(*layers[0:2])" in snippet["code"]
    assert peak_of_pasted("net.py:leaves", snippet["code"]) == plan["ledger_peak"]
    record = profiled(capsys, "net.py:leaves", "-q", "-s", plan["strategy"])
    (row,) = (row for row in record["strategies"] if row["strategy"] == plan["strategy"])
    assert row["ledger_peak_bytes"] - row["params_input_bytes"] == plan["ledger_peak"]


@pytest.mark.slow
def test_the_last_layer_of_an_encoder_is_pure_cost(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """And the figures of the page."""
    (tmp_path / "encoder.py").write_text(ENCODER)
    plan = planned(capsys, f"{tmp_path / 'encoder.py'}:make", "--budget", "9MB")
    names = ["none", "remat:only=0", "remat:only=0..1", "remat:only=0..2"]
    assert [point["strategy"] for point in plan["frontier"]] == names
    assert plan["strategy"] == names[2]
    assert plan["blocks"][3]["peak_bytes"] > plan["frontier"][0]["peak"]
    page = (Path(__file__).parent.parent / "docs" / "pytorch.md").read_text()
    for point in plan["frontier"]:
        assert f"| {size(point['peak'])} | {size(point['held'])} |" in page
    assert plan["code"][0]["code"] in page


@pytest.mark.slow
@NEEDS_TRANSFORMERS
def test_the_switch_of_a_framework_is_named_where_it_is_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "llama.py"
    file.write_text(LLAMA)
    module = f"{file}:uncached"
    budget = budgets_of(planned(capsys, module, "--pareto"))[-1]
    plan = planned(capsys, module, "--budget", str(budget))
    ways = {snippet["way"]: snippet["code"] for snippet in plan["code"]}
    assert "enable()" in ways["the module's own switch"]
    for code in ways.values():
        assert peak_of_pasted(module, code) == plan["ledger_peak"]


@pytest.mark.slow
@NEEDS_TRANSFORMERS
@pytest.mark.parametrize("name", ["gpt2", "vit", "bert"])
def test_models_fit_three_fifths_of_what_they_take(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    module = f"{tmp_path / 'models.py'}:{name}"
    none = planned(capsys, module, "--budget", "1GB")
    assert none["strategy"] == "none"
    budget = none["peak"] * 3 // 5
    plan = planned(capsys, module, "--budget", str(budget))
    assert plan["predicted"] == plan["as_predicted"] > 0
    assert len(plan["actions"]) < len(plan["blocks"])
    for snippet in plan["code"]:
        assert peak_of_pasted(module, snippet["code"]) == plan["ledger_peak"] <= budget
