"""`ckpt compare`: saved runs against a base, strategy by strategy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.exit_codes import FAILED_CONDITION, UNTRUSTWORTHY
from ckptcli.cli.options import FiniteRange, gate_options
from ckptcli.cli.records import (
    STDIN,
    read_record_file,
    screen_from_options,
    screen_options,
)
from ckptcli.cli.settings import SettingsCommand
from ckptcli.cli.streams import warn
from ckptcli.errors import UsageError

if TYPE_CHECKING:
    from ckptcli.measure.compare import RunComparison
    from ckptcli.measure.conditions import Condition


@click.command("compare", cls=SettingsCommand)
@click.argument("base_name", metavar="BASE", type=click.Path())
@click.argument("new_names", metavar="NEW...", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--threshold",
    "threshold_percent",
    type=FiniteRange(0, 50),
    default=2.0,
    show_default=True,
    metavar="PERCENT",
    help="Times within this of the base's are `same`.",
)
@click.option(
    "--allow-different-machines",
    is_flag=True,
    help="Give time verdicts even if the machine records differ.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, schema ckpt.compare/1."
)
@screen_options
@gate_options
@click.option("-q", "--quiet", is_flag=True, help="No warnings.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    base_name: str,
    new_names: tuple[str, ...],
    conditions: tuple[str, ...],
    strict: bool,
    quiet: bool,
    **_: Any,
) -> int:
    """Compare saved runs of one workload with BASE: memory exactly, time with an interval.

    A time verdict needs runs of several processes (`ckpt run --processes`) on one machine. A file
    `-` is stdin.
    """
    from ckptcli.measure.conditions import check_applies, parse_condition

    gates = [parse_condition(text) for text in conditions]
    comparisons = _comparisons(ctx.params)
    for comparison in comparisons:
        for gate in gates:
            check_applies(gate, [entry.strategy for entry in comparison.strategies], True)
    _print(ctx.params, comparisons)
    if gates:
        warn(_undecided(gates, comparisons), quiet)
    fired = [text for c, name in zip(comparisons, new_names) for text in _fired(gates, c, name)]
    for sentence in fired:
        click.echo(f"failed: {sentence}", err=True)
    if fired:
        return FAILED_CONDITION
    return UNTRUSTWORTHY if strict and any(c.unclear for c in comparisons) else 0


def _comparisons(params: dict[str, Any]) -> list[RunComparison]:
    from ckptcli.measure.compare import compare

    names = [params["base_name"], *params["new_names"]]
    if names.count(STDIN) > 1:
        raise UsageError("stdin is given twice, `-` and `-`", "stdin holds one record")
    base, *news = [read_record_file(name) for name in names]
    return [
        compare(
            base,
            new,
            threshold=params["threshold_percent"] / 100.0,
            allow_different_machines=params["allow_different_machines"],
        )
        for new in news
    ]


def _print(params: dict[str, Any], comparisons: Sequence[RunComparison]) -> None:
    base_name, new_names = params["base_name"], params["new_names"]
    if params["as_json"]:
        from ckptcli.measure.compare_json import comparison_object

        data = comparison_object(base_name, new_names, comparisons)
        click.echo(json.dumps(data, indent=2, allow_nan=False))
        return
    from ckptcli.report.compare_console import render_comparison

    screen = screen_from_options(params)
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
