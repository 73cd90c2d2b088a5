"""`ckpt compare`: saved runs against a base, strategy by strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.streams import say, warn
from ckptcli.errors import UsageError
from ckptcli.exit_codes import DONE, FAILED_CONDITION, UNTRUSTWORTHY

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.measure.compare import RunComparison
    from ckptcli.measure.conditions import Condition
    from ckptcli.options.commands.compare import CompareOptions


@options_command(
    "compare",
    click.Argument(["base_name"], metavar="BASE", type=click.Path()),
    click.Argument(["new_names"], metavar="NEW...", type=click.Path(), nargs=-1, required=True),
)
def command(options: CompareOptions, line: Line, base_name: str, new_names: tuple[str, ...]) -> int:
    """Compare saved runs of one workload with BASE: memory exactly, time with an interval.

    A time verdict needs runs of several processes (`ckpt run --processes`) on one machine. A file
    `-` is stdin; the folder of a sweep is compared point by point.
    """
    with reader_may_leave():
        return _compared(options, base_name, new_names)


def _compared(options: CompareOptions, base_name: str, new_names: Sequence[str]) -> int:
    from ckptcli.measure.conditions import check_applies, parse_condition

    gates = [parse_condition(text) for text in options.gates.conditions]
    named = _comparisons(options, [base_name, *new_names])
    new_names, comparisons = [name for name, _ in named], [found for _, found in named]
    for comparison in comparisons:
        for gate in gates:
            check_applies(gate, [entry.strategy for entry in comparison.strategies], True)
    _export_and_print(options, [base_name, *new_names], comparisons)
    if gates:
        warn(_undecided(gates, comparisons), options.notes.quiet)
    fired = [text for c, name in zip(comparisons, new_names) for text in _fired(gates, c, name)]
    for sentence in fired:
        say(f"failed: {sentence}")
    if fired:
        return FAILED_CONDITION
    undecided = any(c.unclear or not c.strategies for c in comparisons)
    return UNTRUSTWORTHY if options.strictness.strict and undecided else DONE


def _comparisons(options: CompareOptions, names: Sequence[str]) -> list[tuple[str, RunComparison]]:
    """Each with the name of what is compared; of folders whose points differ in words, as the
    dtype, one for each of these that both have.
    """
    from ckptcli.cli.records import STDIN, read_records
    from ckptcli.measure.compare import compare

    if names.count(STDIN) > 1:
        raise UsageError("stdin is given twice, `-` and `-`", "stdin holds one record")
    base, *news = [read_records(name) for name in names]
    for name, new in zip(names[1:], news):
        if not base.keys() & new.keys():
            kinds = [", ".join(filter(None, known)) or "one kind of point" for known in (base, new)]
            raise UsageError(
                f"`{names[0]}` has {kinds[0]}, `{name}` has {kinds[1]}: no point is in both",
                "compare sweeps of the same grid",
            )
    return [
        (
            f"{name}, {kind}" if kind else name,
            compare(
                base[kind],
                record,
                threshold=options.threshold.threshold_percent / 100.0,
                allow_different_machines=options.machines.allow_different_machines,
            ),
        )
        for name, new in zip(names[1:], news)
        for kind, record in new.items()
        if kind in base
    ]


def _export_and_print(
    options: CompareOptions, names: Sequence[str], comparisons: Sequence[RunComparison]
) -> None:
    from ckptcli.cli.exports import Exports
    from ckptcli.report.compare_files import Comparisons, comparison_exporter_for

    base_name, *new_names = names
    result = Comparisons(base_name, new_names, comparisons)
    with Exports(options.export, options.data, comparison_exporter_for) as exports:
        exports.write(result)
        exports.check()
        if exports.to_stdout is None:
            _print(options, names, comparisons)
        else:
            exports.print(result)


def _print(
    options: CompareOptions, names: Sequence[str], comparisons: Sequence[RunComparison]
) -> None:
    base_name, *new_names = names
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.measure.compare_json import comparison_object

        print_json(comparison_object(base_name, new_names, comparisons))
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.compare_console import render_comparison

    screen = open_screen(options.screen)
    texts = [
        render_comparison(comparison, screen, base_name=base_name, new_name=name)
        for name, comparison in zip(new_names, comparisons)
    ]
    click.echo("\n".join(texts), nl=False, color=True)


def _fired(gates: Sequence[Condition], comparison: RunComparison, name: str) -> list[str]:
    """A sentence for each condition that holds; a time whose verdict is capped fires on nothing."""
    from ckptcli.measure.conditions import Subject, fired

    subjects = [
        Subject(
            entry.strategy,
            entry.new,
            entry.base,
            None if comparison.caps else entry.ratios,
            is_reference=False,
            point=entry.point,
        )
        for entry in comparison.strategies
    ]
    return [f"{name}: {text}" for gate in gates for text in fired(gate, subjects)]


def _undecided(gates: Sequence[Condition], comparisons: Sequence[RunComparison]) -> list[str]:
    """What to say of conditions that cannot fire, since no time verdict can be given."""
    from ckptcli.measure.conditions import TIMES

    if not any(comparison.caps for comparison in comparisons):
        return []
    return [
        f"`--fail-on {gate.text}` is not decided: no time verdict can be given, see the result; "
        "--strict makes that exit with 4"
        for gate in gates
        if gate.metric in TIMES and gate.percent
    ]
