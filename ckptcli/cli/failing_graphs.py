"""`--save-failing FILE`: the smallest part of each failing program, and how to run it.

Invariant: the command that is printed for a graph fails as the program did: it names the strategy,
the library, and the fault that was asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcli.cli.streams import hint, warn
from ckptcli.options.commands.check import FailingOptions
from ckptcli.report.closing import Closing

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.report.output import OutputFile
    from ckptcli.workloads.base import Workload
    from ckptcli.workloads.graph_case import GraphCase


class FailingGraphs(Closing):
    """Takes failures, and writes them at once, a graph a line; nothing without a file to write."""

    def __init__(self, options: FailingOptions) -> None:
        """Open the file.

        Raises:
            UsageError: it exists, or cannot be written.
        """
        self._path = options.failing_path
        self._file: OutputFile | None = None
        self._cases: list[GraphCase] = []
        self._without: list[str] = []
        self._could = False
        if self._path is not None:
            from ckptcli.report.output import OutputFile

            self._file = OutputFile.open(Path(self._path), force=False)

    def add(self, workload: Workload, strategy: Strategy, backend: Backend) -> None:
        """Look for the smallest graph of a program that fails under a strategy."""
        graph = workload.as_graph()
        self._could = self._could or graph is not None
        if self._file is None:
            return
        small = None if graph is None else _smallest(graph, strategy, backend)
        if small is None:
            self._without.append(strategy.name)
        else:
            self._cases.append(replace(small, strategy=strategy.name))

    def tell(self, more: Sequence[str], quiet: bool) -> None:
        """Write what was found, and say how to run it, with `more` words; or that it can be had."""
        if self._file is None:
            if self._could:
                hint("next: --save-failing FILE writes the smallest graph that fails", quiet)
            return
        warn(
            f"{name}: as a graph file, in float64 and without layers, it does not fail"
            for name in self._without
        )
        if self._cases:
            self._file.write("".join(case.as_json() for case in self._cases))
        for number in range(len(self._cases)):
            hint(f"the smallest graph that fails: {self._command(number, more)}")

    def _command(self, number: int, more: Sequence[str]) -> str:
        program = f"graph:{self._path}" + (f"#{number}" if len(self._cases) > 1 else "")
        words = ["ckpt", "check", "--workload", program]
        words += ["-s", self._cases[number].strategy or "none"]
        return shlex.join([*words, *more])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _smallest(graph: GraphCase, strategy: Strategy, backend: Backend) -> GraphCase | None:
    """None for a strategy of layers, which a graph has not, and where no part fails."""
    from ckptcli.verify.check import check
    from ckptcli.verify.smallest import smallest_failing

    if strategy.needs_layers:
        return None
    return smallest_failing(
        graph, lambda cut: not check(cut, strategy, cut, backend=backend).passed
    )
