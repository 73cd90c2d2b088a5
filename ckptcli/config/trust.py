"""What a burn.toml may do that was only met on the way upward, and that nobody named.

A folder that somebody else filled must not run code or write over files just because a command is
started in it. Such a file sets figures and words; code, exports and log files elsewhere need
`--config`.

Invariant: what is left out is told with its key and the file, and costs only itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ckptcli.config.defaults import TABLE
from ckptcli.config.search import FoundConfig
from ckptcli.config.toml_file import shown
from ckptcli.options.option import Option

LOG_FILE = "autodiff.logger.file"

_CODE_ENDS = ".py"
_CODE_MARK = ".py:"


def as_trusted(found: FoundConfig, options: Mapping[str, Option]) -> tuple[FoundConfig, list[str]]:
    """The file with what it may set, and a sentence for each key that was left out.

    `options` has every key that there is, written with `-`.
    """
    if found.named or found.path is None:
        return found, []
    kept, refusals = _table(found.document.get(TABLE), options)
    document = found.document if kept is None else {**found.document, TABLE: kept}
    settings = found.settings
    if settings.file is not None and not _is_below(settings.file, found.path.parent):
        reason = "a log file outside the folder of the burn.toml"
        refusals.append(f"`{LOG_FILE}` is {shown(str(settings.file))}, {reason}")
        settings = replace(settings, file=None)
        document = {**document, **_without_file(document)}
    advice = f"skipped, since the file was only found; use --config {found.path} to apply it"
    sentences = [f"{found.path}: {refusal}: {advice}" for refusal in refusals]
    return replace(found, settings=settings, document=document), sentences


def _table(
    table: object, options: Mapping[str, Option]
) -> tuple[dict[str, object] | None, list[str]]:
    if not isinstance(table, dict):
        return None, []
    kept: dict[str, object] = {}
    refusals: list[str] = []
    for name, value in table.items():
        reason = _refusal(options.get(name.replace("_", "-")), value)
        if reason is None:
            kept[name] = value
        else:
            refusals.append(f"`{TABLE}.{name}` is {shown(value)}, {reason}")
    return kept, refusals


def _refusal(option: Option | None, value: object) -> str | None:
    """Why a found file may not set this, if it may not."""
    if option is None:
        return None  # told as unknown
    if option.not_from_found and value is not False:
        return option.not_from_found
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    if any(_CODE_MARK in text or text.endswith(_CODE_ENDS) for text in texts):
        return "code that would be run"
    return None


def _without_file(document: Mapping[str, object]) -> dict[str, object]:
    section = document["autodiff"]
    assert isinstance(section, dict)
    logger = {key: value for key, value in section["logger"].items() if key != "file"}
    return {"autodiff": {**section, "logger": logger}}


def _is_below(file: Path, folder: Path) -> bool:
    """Whether the log file, links followed, is in the folder or below it."""
    try:
        place, top = os.path.realpath(file), os.path.realpath(folder)
    except ValueError:  # a name that the file system cannot have, which whoever opens it tells
        return True
    return os.path.commonpath([place, top]) == top
