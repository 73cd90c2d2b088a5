"""What `ckpt check` proves of the workload: each strategy in ckpt's engine, and in others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ckptcli.cli.failing_graphs import FailingGraphs
from ckptcli.cli.streams import warn
from ckptcli.cli.text_page import TextPage
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.exit_codes import DONE, UNTRUSTWORTHY, WRONG
from ckptcli.units import count

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend
    from ckptcli.checkpoint.strategies.base import Strategy
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.peers.base import Engine
    from ckptcli.profiling.peer_check import PeerCheck
    from ckptcli.verify.check import Check
    from ckptcli.verify.fault import Fault
    from ckptcli.workloads.base import Workload

SCHEMA = "ckpt.check/1"
SHOWN = 5


def check_workload(options: CheckOptions, line: Line, engines: Sequence[Engine]) -> int:
    """Each program under each strategy; the exit code.

    Raises:
        CkptError: options that do not go together, or a program that fails.
    """
    from ckptcli.cli.devices import open_device
    from ckptcli.cli.programs import open_programs, places_of, program_notes
    from ckptcli.cli.strategy_choice import check_layers, parse_strategies, perturbed_strategies
    from ckptcli.options.listing import changed
    from ckptcli.profiling.profile import check_engines

    quiet = options.notes.quiet
    with FailingGraphs(options.failing) as failing:
        strategies = parse_strategies(options.strategies.strategy_texts or ("balanced",))
        workloads = open_programs(options.program, options.workload, options.memory)
        notes = program_notes(line, options.program, workloads, [engine.name for engine in engines])
        backend = open_device(options.device, options.workload.dtype, quiet)
        warn(notes, quiet)
        in_float64 = changed(options.workload, dtype="float64")
        precise = open_programs(options.program, in_float64, options.memory)
        points = places_of(options.program, options.workload, workloads)
        programs = list(zip(points, workloads, precise))
        for workload in workloads:
            check_layers(strategies, workload)
            check_engines(engines, workload, backend)
        text = options.fault.perturb_text
        strategies, fault = perturbed_strategies(text, strategies, workloads)
        del workload, workloads, precise  # `programs` alone holds them, and lets go of them
        checks, peers = _checked(options, strategies, programs, backend, engines, failing)
        failing.tell(_same_surroundings(options), quiet)
    if fault is not None:
        warn(_without_effect(fault, checks), quiet)
    every: list[Check | PeerCheck] = [*checks, *peers]
    if any(found.passed is False for found in every):
        return WRONG
    undecided = [found.strategy for found in every if not found.usable_directions]
    return UNTRUSTWORTHY if options.strictness.strict and undecided else DONE


def _same_surroundings(options: CheckOptions) -> list[str]:
    """The words that check another program as this one was: in which library, with which fault."""
    from ckptcli.options.listing import options_of, values_of
    from ckptcli.options.words import reproduction_words

    return [
        word
        for group in (options.device, options.fault)
        for word in reproduction_words(options_of(type(group)), values_of(group))
    ]


def _checked(
    options: CheckOptions,
    strategies: Sequence[Strategy],
    programs: list[tuple[dict[str, float], Workload, Workload]],
    backend: Backend,
    engines: Sequence[Engine],
    failing: FailingGraphs,
) -> tuple[list[Check], list[PeerCheck]]:
    """Check and print each program, with the same in float64 beside it."""
    from ckptcli.cli.programs import drained
    from ckptcli.profiling.out_of_memory import told_as_failure
    from ckptcli.verify.check import check

    every: list[Check] = []
    in_engines: list[PeerCheck] = []
    with backend.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrackedBackwardWarning)
        for point, workload, exact in drained(programs):
            checks = []
            for strategy in strategies:
                with told_as_failure(backend, strategy.name, lambda: "a checked pass"):
                    seed = options.workload.seed
                    checks.append(check(workload, strategy, exact, seed, backend))
            peers = _in_engines(options, strategies, workload, exact, backend, engines)
            _print(workload, point, checks, peers, options)
            for strategy, found in zip(strategies, checks):
                if not found.passed:
                    failing.add(workload, strategy, backend)
            every += checks
            in_engines += peers
    return every, in_engines


def _in_engines(
    options: CheckOptions,
    strategies: Sequence[Strategy],
    workload: Workload,
    precise: Workload,
    backend: Backend,
    engines: Sequence[Engine],
) -> list[PeerCheck]:
    """The same strategies in other libraries, whose code is loaded only for them."""
    if not engines:
        return []
    from ckptcli.autodiff.device import Device
    from ckptcli.profiling.peer_check import check_in_engines

    seed = options.workload.seed
    return [*check_in_engines(engines, strategies, workload, precise, Device(backend), seed)]


def _without_effect(fault: Fault, checks: Sequence[Check]) -> list[str]:
    """What to tell of a fault on purpose that nothing shows."""
    if not fault.hits:
        return [f"--perturb-replay {fault.text} met no value that is computed again"]
    if any(found.wrong_values or found.wrong_gradients for found in checks):
        return []
    return [
        f"--perturb-replay {fault.text} changed nothing: it computed {count(fault.hits, 'value')} "
        "again, and each came out as in the forward pass"
    ]


def _print(
    workload: Workload,
    point: dict[str, float],
    checks: list[Check],
    peers: list[PeerCheck],
    options: CheckOptions,
) -> None:
    from ckptcli.cli.peer_checks import peer_lines

    if options.data.as_json:
        from ckptcli.cli.json_output import print_json_line

        print_json_line(_as_object(workload, point, checks, peers))
        return
    page = TextPage(options.screen)
    page.print(workload.title)
    for found in checks:
        word = page.styled("passed", "green") if found.passed else page.styled("FAILED", "red")
        page.print(f"{found.strategy}: {word}")
        for line in _lines(found, workload):
            page.print(f"  {line}", hang=22)
    for peer in peers:
        words = {True: ("passed", "green"), False: ("FAILED", "red"), None: ("n/a", "yellow")}
        page.print(f"{peer.name}: {page.styled(*words[peer.passed])}")
        for line in peer_lines(peer):
            page.print(f"  {line}", hang=22)


def _as_object(
    workload: Workload, point: dict[str, float], checks: list[Check], peers: list[PeerCheck]
) -> dict[str, Any]:
    from ckptcli.cli.peer_checks import ONLY_IN_ENGINES, peer_data
    from ckptcli.measure import OURS
    from ckptcli.measure.codec import with_finite_numbers

    warnings: list[str] = []
    every: list[Check | PeerCheck] = [*checks, *peers]
    own = [{**ONLY_IN_ENGINES, "engine": OURS, **asdict(found)} for found in checks]
    data = [
        {
            **told,
            "usable_directions": found.usable_directions,
            "unusable_directions": found.unusable_directions,
            "passed": found.passed,
        }
        for told, found in zip((*own, *map(peer_data, peers)), every)
    ]
    finite = with_finite_numbers(data, "checks", warnings)
    where = {"point": point} if point else {}
    whole = {"schema": SCHEMA, "workload": workload.title, **where}
    return {**whole, "checks": finite, "warnings": warnings}


def _lines(found: Check, workload: Workload) -> Iterator[str]:
    from ckptcli.cli.peer_checks import difference_line

    same = found.gradients - len(found.wrong_gradients)
    measure = "bit for bit"
    if found.spread is not None:
        measure = "within the run-to-run spread"
        yield (
            "run-to-run spread   two passes of `none` lie "
            f"{found.spread:.1e} apart: this library is not deterministic"
        )
    yield f"gradients           {same} of {found.gradients} are `none`'s, {measure}"
    for name, difference in found.wrong_gradients:
        moved = difference.found - difference.expected
        yield f"                    {name}: {difference}, moved by {moved:+.2e}"
    if found.unused:
        yield f"no gradient         the loss never uses {_some(found.unused)}, or only detached"
    if found.not_finite:
        yield f"not finite          nan or infinity in the gradient of {_some(found.not_finite)}"
    if found.differences and not found.has_float64:
        yield "finite differences  in NumPy, since the device has no float64"
    if not found.differences:
        yield "finite differences  left out: the program detaches values, or has no gradient"
    yield from map(difference_line, found.differences)
    if found.differences and not found.usable_directions:
        yield (
            f"                    {_of_all(found)} unusable: whether the gradient is that of the "
            "loss is not decided here"
        )
    same = found.compared - len(found.wrong_values)
    yield f"recomputed values   {same} of {found.compared} are the forward's, {measure}"
    for value in found.wrong_values[:SHOWN]:
        yield (
            f"                    node {value.node} ({value.op}, "
            f"{_place(workload, value.layer)}{value.source}): {value.difference}"
        )
    yield from _gauge_lines(found, workload)
    own, reference = found.draws
    beside = "as under `none`" if own == reference else f"`none` takes {reference}"
    yield f"random draws        {own}, {beside}"


def _some(names: Sequence[str]) -> str:
    left = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {left} more" if left > 0 else "")


def _of_all(found: Check) -> str:
    directions = found.unusable_directions
    return "the one direction is" if directions == 1 else f"all {directions} directions are"


def _gauge_lines(found: Check, workload: Workload) -> Iterator[str]:
    """What differs in decompositions, in the order of the program; those with signs first."""
    by_kind = sorted(found.gauges, key=lambda g: (not (g.flipped or g.turned), g.node))
    for gauge in by_kind[:SHOWN]:
        place = f"{_place(workload, gauge.layer)}node {gauge.node} ({gauge.op})"
        yield f"decompositions      {place} differs in {gauge}"
    if len(by_kind) > SHOWN:
        yield f"                    and {len(by_kind) - SHOWN} more"


def _place(workload: Workload, layer: int | None) -> str:
    return "" if layer is None else f"{workload.layer_name(layer)}, "
