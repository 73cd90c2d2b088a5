"""What a command line can be about, one file each: a class `SUBJECT` that says which words mean it.

A file is all that `ckpt run`, `ckpt check`, `ckpt saved`, `ckpt plan` and `ckpt fits` need of a
further subject; the workload is meant where no other one is.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.cli.subjects.base import Subject, SubjectOptions
    from ckptcli.options.effects import Kind


def subject_of(options: SubjectOptions, line: Line) -> Subject:
    """The subject that the options mean.

    Raises:
        UsageError: they mean two, or do not go together.
    """
    return _meant(options)(options, line)


def kind_of(options: SubjectOptions) -> Kind:
    """What options mean for the subject; a workload must have been named rightly.

    Raises:
        UnknownNameError, UsageError: no such workload, or two subjects.
    """
    return _meant(options).kind(options)


def words_of(options: SubjectOptions) -> str | None:
    """The words that mean a subject; None where the workload is meant for want of any.

    Raises:
        UsageError: they mean two.
    """
    return _meant(options).named_by(options)


def _meant(options: SubjectOptions) -> type[Subject]:
    meant = {words: kind for kind in _kinds() if (words := kind.named_by(options)) is not None}
    if len(meant) > 1:
        first, second, *_ = meant
        raise UsageError(f"{first} and {second} are two programs", "leave out one")
    from ckptcli.cli.subjects.workload import SUBJECT as WORKLOAD

    return next(iter(meant.values()), WORKLOAD)


def _kinds() -> list[type[Subject]]:
    modules = [importlib.import_module(f"{__name__}.{name}") for name in _names()]
    return [module.SUBJECT for module in modules if hasattr(module, "SUBJECT")]


def _names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]
