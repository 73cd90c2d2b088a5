"""`scripts/test --fast` leaves out cases, not files: each file has some that it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fast_cases import FAST_CASES

PACKAGE = Path(__file__).parent.parent / "ckptcli"

WITHOUT = {
    "test_html_browser.py": "needs a browser",
    "test_jax_cache.py": "loads JAX",
    "test_points_engines.py": "loads PyTorch and JAX",
    "test_properties.py": "is one search through hundreds of programs",
    "test_torch_backend.py": "loads PyTorch, which takes seconds",
    "test_torch_module_regions.py": "loads PyTorch",
    "test_torch_module_values.py": "loads PyTorch",
    "test_torch_modules.py": "loads PyTorch",
    "test_torch_sums.py": "loads PyTorch",
}
"""The files that have no fast case, and why."""


def test_every_file_has_a_case_that_fast_runs(request: pytest.FixtureRequest) -> None:
    """Of those that were collected: a run of one file looks at that file alone."""
    fast = request.config.stash[FAST_CASES]
    assert {name for name, count in fast.items() if not count} <= WITHOUT.keys()


def test_every_file_without_one_is_there() -> None:
    assert [name for name in WITHOUT if not (Path(__file__).parent / name).exists()] == []


@pytest.mark.parametrize("part", sorted(p.name for p in PACKAGE.iterdir() if p.is_dir()))
def test_every_part_of_the_package_is_met_by_a_fast_file(
    part: str, request: pytest.FixtureRequest
) -> None:
    """By a file that imports it, with a case that is fast."""
    fast = request.config.stash[FAST_CASES]
    if part == "__pycache__" or len(fast) < len(list(Path(__file__).parent.glob("test_*.py"))):
        pytest.skip("only some files were collected")
    texts = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in fast)
    assert any(re.search(rf"(from|import) ckptcli\.{part}\b", text) for text in texts)
