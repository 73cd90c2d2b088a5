"""What `ckpt run` measures, one file each: a class `SUBJECT` that says when it is meant.

A file is all that a further subject takes; the workload is what is measured otherwise.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.subjects.base import RunSubject
    from ckptcli.options.commands.run import RunOptions


def subject_of(options: RunOptions, line: Line) -> RunSubject:
    """The subject that the options mean."""
    kinds = [importlib.import_module(f"{__name__}.{name}") for name in _names()]
    known = [kind.SUBJECT for kind in kinds if hasattr(kind, "SUBJECT")]
    meant = [subject for subject in known if subject.is_meant(options)]
    chosen: RunSubject = max(meant, key=lambda subject: subject.is_special)(options, line)
    return chosen


def _names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]
