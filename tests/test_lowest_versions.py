"""The lowest versions that are tried are the lowest that are allowed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"]  # type: ignore[no-any-return]


def versions(lines: list[str], relation: str) -> dict[str, tuple[int, ...]]:
    """Name -> version, of lines such as `numpy>=1.24`; zeros at the end say nothing."""
    found = {}
    for line in lines:
        name, version = re.findall(rf"^([\w-]+){relation}([\d.]+)", line)[0]
        numbers = [int(number) for number in version.split(".")]
        while not numbers[-1]:
            numbers.pop()
        found[name] = tuple(numbers)
    return found


def test_the_lowest_versions_are_those_of_the_project() -> None:
    text = (ROOT / "scripts" / "lowest.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert versions(lines, "==") == versions(project()["dependencies"], ">=")


def test_the_oldest_python_that_is_tried_is_the_oldest_that_is_allowed() -> None:
    script = (ROOT / "scripts" / "pythons").read_text(encoding="utf-8")
    (oldest,) = re.findall(r"^oldest=(.*)$", script, re.M)
    assert project()["requires-python"] == f">={oldest}"
