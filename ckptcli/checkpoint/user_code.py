"""Strategies and policies of the user's own, as `FILE.py:NAME`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from ckptcli.errors import UnknownNameError, UsageError

MARK = ".py:"


def is_user_code(text: str) -> bool:
    """Whether `text` has the form `FILE.py:NAME`."""
    return MARK in text


def load_name(text: str) -> object:
    """What `NAME` stands for in `FILE.py`, which is run to find out.

    Raises:
        UsageError: the file cannot be run.
        UnknownNameError: it has no such name.
    """
    stem, _, name = text.partition(MARK)
    path = Path(f"{stem}.py")
    module = _run(path)
    if not hasattr(module, name):
        known = [known for known in vars(module) if not known.startswith("_")]
        raise UnknownNameError(f"name in `{path}`:", name, known)
    found: object = getattr(module, name)
    return found


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a file of the user's raises
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"`{path}` cannot be loaded: {reason}") from error
    return module
