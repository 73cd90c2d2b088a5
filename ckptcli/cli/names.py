"""The names that an option completes, from registries that are read when the shell asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Names = Mapping[str, str | None]
"""Name -> a line of help, or None."""

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def completing(names: Callable[[], Names]) -> Completer:
    """What click asks for completions."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=summary)
            for name, summary in names().items()
            if name.startswith(incomplete)
        ]

    return complete


def _strategies() -> Names:
    from ckptcli.checkpoint.strategies.registry import registry

    return {name: strategy.summary for name, strategy in registry().items()}


def _workloads() -> Names:
    from ckptcli.workloads.registry import workload_names

    return dict.fromkeys(workload_names())


def _engines() -> Names:
    from ckptcli.measure import OURS
    from ckptcli.peers.base import engines

    return {OURS: "ckpt's own", **{name: engine.summary for name, engine in engines().items()}}


def _backends() -> Names:
    from ckptcli.backends.registry import libraries

    return {name: library.title for name, library in libraries().items()}


def _devices() -> Names:
    from ckptcli.backends.registry import AUTO, libraries

    known = [name for library in libraries().values() for name in library.device_names]
    return {**dict.fromkeys(known), AUTO: "a GPU if there is one"}


def _levels() -> Names:
    return dict.fromkeys(("basic", "medium", "full"))


def _formats() -> Names:
    from ckptcli.report.formats import registry

    return {name: " ".join(exporter.suffixes) for name, exporter in registry().items()}


def _faults() -> Names:
    from ckptcli.verify.fault import KINDS, SIGN

    return dict.fromkeys((*KINDS, SIGN))


def _planners() -> Names:
    from ckptcli.planning.planners.registry import AUTO, registry

    planners = {name: planner.summary for name, planner in registry().items()}
    return {AUTO: "all that fit, and the best of their plans", **planners}


def glossary() -> Names:
    """The words that `ckpt explain` defines."""
    from ckptcli.report.glossary import defined_terms

    return dict.fromkeys(defined_terms())


NAMES: dict[str, Callable[[], Names]] = {
    "strategy": _strategies,
    "workload": _workloads,
    "engine": _engines,
    "backend": _backends,
    "device": _devices,
    "level": _levels,
    "format": _formats,
    "fault": _faults,
    "planner": _planners,
}
"""By the word that an option declares."""


def listed(kind: str) -> str:
    """The names in a sentence, `a, b or c`."""
    *others, last = NAMES[kind]()
    return f"{', '.join(others)} or {last}" if others else last
