"""What `ckpt check` proves of the workload: each strategy in ckpt's engine, and in others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ckptcli.cli.failing_graphs import FailingGraphs
from ckptcli.cli.streams import warn
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.measure.check import CheckedProgram

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.measure.check import Check
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.peers.base import Engine
    from ckptcli.verify.fault import Fault
    from ckptcli.workloads.base import Workload


def checked_workload(
    options: CheckOptions, line: Line, engines: Sequence[Engine]
) -> Iterator[CheckedProgram]:
    """Each program under each strategy, with the same in float64 beside it.

    Raises:
        CkptError: options that do not go together, or a program that fails.
    """
    from ckptcli.cli.programs import drained, open_programs, opened_programs
    from ckptcli.cli.strategy_choice import parse_strategies, perturbed_strategies
    from ckptcli.options.listing import changed
    from ckptcli.profiling.profile import check_engines

    quiet = options.notes.quiet
    with FailingGraphs(options.failing) as failing:
        strategies = parse_strategies(options.strategies.strategy_texts or ("balanced",))
        programs = opened_programs(options, line)
        in_float64 = changed(options.workload, dtype="float64")
        precise = open_programs(options.program, in_float64, options.memory)
        for workload in programs.workloads:
            check_engines(engines, workload, programs.backend)
        del workload  # the lists alone hold them, and let go of them
        programs.check(strategies)
        text = options.fault.perturb_text
        strategies, fault = perturbed_strategies(text, strategies, programs.workloads)
        under = _Under(strategies, programs.backend, engines, options.workload.seed)
        is_seen = False
        for (point, workload), exact in zip(programs.each(), drained(precise)):
            checks = under.checks(workload, exact)
            yield CheckedProgram(workload.title, checks, point=point)
            for strategy, found in zip(strategies, checks):
                if not found.passed:
                    failing.add(workload, strategy, programs.backend)
                is_seen = is_seen or bool(found.wrong_values or found.gradients_apart)
        failing.tell(_same_surroundings(options), quiet)
    if fault is not None and not is_seen:
        warn(_without_effect(fault), quiet)


@dataclass(frozen=True, slots=True)
class _Under:
    """What programs are checked under: strategies, and the libraries that run them."""

    strategies: Sequence[Strategy]
    backend: Backend
    engines: Sequence[Engine]
    seed: int

    def checks(self, workload: Workload, precise: Workload) -> list[Check]:
        """In ckpt's own engine, then in others; `precise` is the same in float64."""
        from ckptcli.profiling.out_of_memory import told_as_failure
        from ckptcli.verify.check import check

        found = []
        with self.backend.quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UntrackedBackwardWarning)
            for strategy in self.strategies:
                with told_as_failure(self.backend, strategy.name, lambda: "a checked pass"):
                    found.append(check(workload, strategy, precise, self.seed, self.backend))
            return [*found, *self._in_engines(workload, precise)]

    def _in_engines(self, workload: Workload, precise: Workload) -> Iterator[Check]:
        """The same strategies in other libraries, whose code is loaded only for them."""
        if not self.engines:
            return
        from ckptcli.autodiff.device import Device
        from ckptcli.profiling.peer_check import check_in_engines

        device = Device(self.backend)
        yield from check_in_engines(
            self.engines, self.strategies, workload, precise, device, self.seed
        )


def _same_surroundings(options: CheckOptions) -> list[str]:
    """The words that check another program as this one was: in which library, with which fault."""
    from ckptcli.options.listing import options_of, values_of
    from ckptcli.options.words import reproduction_words

    return [
        word
        for group in (options.device, options.fault)
        for word in reproduction_words(options_of(type(group)), values_of(group))
    ]


def _without_effect(fault: Fault) -> list[str]:
    """What to tell of a fault on purpose that nothing shows."""
    if not fault.hits:
        return [f"--perturb-replay {fault.text} met no value that {fault.met}"]
    return [
        f"--perturb-replay {fault.text} changed nothing: it {fault.done}, and each came out as in "
        "the forward pass"
    ]
