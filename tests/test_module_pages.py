"""What `docs/pytorch.md` shows of modules is what the commands say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backend_kit import NEEDS_TORCH
from tests.test_module_saved import listed
from tests.torch_modules import profiled

PAGE = (Path(__file__).parent.parent / "docs" / "pytorch.md").read_text()
SECTION = PAGE.partition("### A head in chunks\n")[2].partition("\n## ")[0]
FILE = SECTION.partition("```python\n")[2].partition("```")[0]


def figures() -> dict[str, tuple[int, int]]:
    """Of the page: which head -> what it holds, and its peak."""
    rows = re.findall(r"^\| `(\w+)`.*?\| ([\d,]+) \| ([\d,]+) \|$", SECTION, flags=re.M)
    return {name: (int(held.replace(",", "")), int(p.replace(",", ""))) for name, held, p in rows}


def test_chunks_alone_hold_as_much_on_the_page() -> None:
    found = figures()
    assert list(found) == ["whole", "chunked", "spared"]
    assert found["whole"][0] == found["chunked"][0] > 10 * found["spared"][0]
    assert FILE.splitlines()[12].strip() == "logits = self.words(hidden)"


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize("name", ["whole", "chunked", "spared"])
def test_a_head_in_chunks(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = tmp_path / "head.py"
    path.write_text(FILE)
    strategy = "own" if name == "spared" else "none"
    row = profiled(capsys, f"{path}:{name}", "-q", "--threads", "1", "-s", strategy)["strategies"][
        -1
    ]
    assert (row["saved_bytes"], row["ledger_peak_bytes"]) == figures()[name]
    if name == "chunked":
        data = listed(capsys, f"{path}:{name}")
        lines = [(total["key"].rpartition("/")[2], total["tensors"]) for total in data["by_line"]]
        assert lines == [("head.py:13", 8), ("head.py:14", 4)]
        held = {
            step for saved in data["saved"] for step in saved["ops"] if saved["bytes"] > 500_000
        }
        assert held == {"GatherBackward0", "LogsumexpBackward0"}


def accounts() -> dict[str, list[str]]:
    """Structure -> the cells of the table that holds ckpt against PyTorch's own accounts."""
    section = PAGE.partition("### Beside PyTorch's own accounts\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return {name: cells for name, *cells in rows[2:]}


def test_the_accounts_on_the_page_are_equal_but_where_a_reason_stands() -> None:
    found = accounts()
    assert len(found) >= 12
    others = {name: (row[2], row[4], row[6]) for name, row in found.items()}
    differing = {name: cells for name, cells in others.items() if set(cells) != {"="}}
    assert differing == {
        "mixture of experts": ("=", "608,924", "="),
        "peft LoRA on Llama": ("=", "n/a", "="),
    }


@pytest.mark.slow
@NEEDS_TORCH
def test_the_benchmark_prints_the_page() -> None:
    """Of what needs no library; workspaces are those of a machine."""
    names = ["LSTM", "mixture of experts"]
    benchmark = Path(__file__).parent.parent / "benchmarks" / "modules.py"
    words = [sys.executable, str(benchmark), "--markdown", *names]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:1] == "|"]
    assert {row[0]: row[1:6] for row in rows[2:]} == {n: accounts()[n][:5] for n in names}
