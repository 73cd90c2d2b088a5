"""Who holds what is live at a module's peak, beside the steps of its backward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckptcli.measure.memory import Holder
from ckptcli.report.readings import holder_reading
from tests.backend_kit import NEEDS_TORCH
from tests.test_module_saved import listed
from tests.test_torch_blocks import LLAMA, NEEDS_TRANSFORMERS
from tests.torch_modules import profiled

MIB = 2**20
SIZE = 64 * 64 * 4
FILE = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ckptcli.torch import Step


class Notes:
    def __init__(self):
        self.seen = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x, notes=None):
        x = torch.tanh(self.inner(x))
        if notes is not None:
            notes.seen.append((x * 2).detach())
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.last = None

    def forward(self, x):
        notes = Notes()
        for block in self.blocks:
            x = block(x, notes=notes)
        return x.mean()


def argument():
    return Net(), torch.rand(64, 64)


class Attribute(Net):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        self.last = {"sine": x.detach().sin()}
        return x.mean()


def attribute():
    return Attribute(), torch.rand(64, 64)


class Closing(Net):
    def forward(self, x):
        for i, block in enumerate(self.blocks):
            notes = Notes()
            notes.seen.append(x.detach().cos())
            x = checkpoint(lambda x, notes=notes, block=block: block(x), x, use_reentrant=False)
            if i == 0:
                x = checkpoint(self.around(notes, block), x, use_reentrant=False)
        return x.mean()

    def around(self, notes, block):
        return lambda x: block(x + notes.seen[0])


def closing():
    return Closing(), torch.rand(64, 64)


class Hooked(Net):
    def __init__(self):
        super().__init__()
        kept = [None]
        self.blocks[0].register_forward_hook(
            lambda module, given, output: kept.__setitem__(0, output.detach().exp())
        )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.mean()


def hooked():
    return Hooked(), torch.rand(64, 64)


TABLE = []


class Filed(Net):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        TABLE[:] = [x.detach().exp()]
        return x.mean()


def filed():
    return Filed(), torch.rand(64, 64)


class Giving(Net):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return {"loss": x.mean(), "more": x.detach().exp()}


def output():
    return Step(Giving(), torch.rand(64, 64), keep_output=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (
            Holder("cache", "argument", "DynamicCache", MIB, 8, 4, 4, 2 * MIB),
            "2.0 MiB more at the peak: `cache` (DynamicCache), an argument of every checkpointed "
            "block; `config.use_cache = False` spares it",
        ),
        (
            Holder("notes", "argument", "Notes", MIB, 8, 3, 4, -5),
            "1.0 MiB of the peak are held by `notes` (Notes), an argument of 3 of 4 checkpointed "
            "blocks",
        ),
        (Holder("", "output", "dict", MIB), "held by the output, which is kept until the backward"),
        (Holder("kept", "closure", "blocks.0", MIB), "in a closure of `blocks.0`"),
        (
            Holder("notes", "closure", "Notes", MIB, 1, 1, 4),
            "closure of 1 of 4 checkpointed blocks",
        ),
    ],
)
def test_a_holder_is_told(holder: Holder, words: str) -> None:
    assert words in holder_reading(holder)


def holders(row: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(h["role"], h["name"], h["bytes"]) for h in row["peak_live"]["holders"]]


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("name", "role", "holder"),
    [
        ("attribute", "attribute", "last"),
        ("hooked", "closure", "<lambda>.kept"),
        ("filed", "global", "TABLE"),
        ("output", "output", ""),
    ],
)
def test_what_is_held_beside_the_graph(
    capsys: pytest.CaptureFixture[str], file: str, name: str, role: str, holder: str
) -> None:
    rows = profiled(capsys, f"{file}:{name}", "-q", "--threads", "1", "-s", "none")["strategies"]
    assert holders(rows[0]) == [(role, holder, SIZE)]
    largest = rows[0]["peak_live"]["largest"]
    (held,) = [tensor for tensor in largest if tensor["held_by"] == [f"{role} {holder}".strip()]]
    assert (held["bytes"], held["why"]) == (SIZE, "saved")


@pytest.mark.slow
@NEEDS_TORCH
def test_an_object_that_checkpoints_are_given(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Each block notes something at its end, which no recomputation reaches."""
    none, remat = profiled(capsys, f"{file}:argument", "-q", "--threads", "1")["strategies"]
    assert holders(none) == []  # gone with the forward pass
    ((role, name, size),) = holders(remat)
    assert (role, name) == ("argument", "notes")
    assert size == 4 * SIZE
    (found,) = remat["peak_live"]["holders"]
    assert (found["checkpoints"], found["all_checkpoints"], found["more_bytes"]) == (4, 4, None)
    (held,) = listed(capsys, f"{file}:argument", ["remat"])["strategies"]
    assert [t["bytes"] for t in held["saved"] if t["ops"] == ["argument notes"]] == 4 * [SIZE]


@pytest.mark.slow
@NEEDS_TORCH
def test_what_a_checkpointed_function_closes_over(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    rows = profiled(capsys, f"{file}:closing", "-q", "--threads", "1", "-s", "own")["strategies"]
    own = rows[1]["peak_live"]["holders"]
    assert ("closure", "notes", 1) in [(h["role"], h["name"], h["checkpoints"]) for h in own]
    assert all(h["all_checkpoints"] == 5 for h in own)


@pytest.mark.slow
@NEEDS_TORCH
@NEEDS_TRANSFORMERS
def test_the_cache_of_a_llama_is_what_its_peak_is_higher_by(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "llama.py"
    path.write_text(LLAMA)
    _, remat, framework = profiled(
        capsys, f"{path}:make", "-q", "--threads", "1", "-s", "remat", "-s", "framework"
    )["strategies"]
    (cache,) = remat["peak_live"]["holders"]
    assert (cache["role"], cache["kind"]) == ("argument", "DynamicCache")
    assert (cache["checkpoints"], cache["all_checkpoints"]) == (4, 4)
    more = remat["ledger_peak_bytes"] - framework["ledger_peak_bytes"]
    assert cache["more_bytes"] == more == 12_344_968 - 10_244_744
    assert framework["peak_live"]["holders"] == []
