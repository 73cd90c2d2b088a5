"""What `ckpt check --function` says of each strategy: lines, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ckptcli.cli.json_output import print_json_line
from ckptcli.cli.text_page import TextPage
from ckptcli.units import count

if TYPE_CHECKING:
    from ckptcli.measure.function_check import Along, Compiled, FunctionCheck, Recomputed
    from ckptcli.measure.row import Agreement
    from ckptcli.options.commands.check import CheckOptions

SHOWN = 5
WORDS = {True: ("passed", "green"), False: ("FAILED", "red"), None: ("n/a", "yellow")}


def print_checks(title: str, checks: Sequence[FunctionCheck], options: CheckOptions) -> None:
    """The checks, on the screen or as data."""
    if options.data.as_json:
        from ckptcli.measure.codec import with_finite_numbers
        from ckptcli.measure.function_check import check_object

        warnings: list[str] = []
        found = with_finite_numbers(check_object(title, checks), "", warnings)
        print_json_line({**found, "warnings": warnings})
        return
    page = TextPage(options.screen)
    page.print(title)
    for check in checks:
        page.print(f"{check.strategy}: {page.styled(*WORDS[check.passed])}")
        for line in check_lines(check):
            page.print(f"  {line}", hang=22)


def check_lines(found: FunctionCheck) -> Iterator[str]:
    """The evidence, a line each."""
    if found.agreement is None or found.op_by_op is None:
        yield f"n/a                 {found.reason}"
        return
    yield f"gradients           compiled {_beside(found.agreement)}"
    for text in found.wrong_gradients[:SHOWN]:
        yield f"                    {text}"
    yield f"                    op by op {_beside(found.op_by_op)}"
    if found.not_compared:
        yield f"not compared        rounding alone: the gradient of {_some(found.not_compared)}"
    if found.not_finite:
        yield f"not finite          nan or infinity in the gradient of {_some(found.not_finite)}"
    yield from map(_along, found.differences)
    if found.why_no_differences is not None:
        yield f"finite differences  left out: {found.why_no_differences}"
    elif found.differences and not found.usable:
        yield "                    no direction is usable: the loss decides nothing here"
    yield from _recomputed(found)
    if found.compiled is not None:
        yield from _in_compiled(found.compiled)


def _beside(known: Agreement) -> str:
    word = "agrees" if known.agrees else "DIFFERS"
    return (
        f"within {known.gradient_relative:.2g} of those of `{known.beside}`, the loss within "
        f"{known.loss_relative:.2g}: {word}, tolerance {known.tolerance:g}"
    )


def _some(names: Sequence[str]) -> str:
    left = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {left} more" if left > 0 else "")


def _along(along: Along) -> str:
    state = "agrees" if along.agrees else "DIFFERS"
    state = state if along.reason is None else f"unusable, {along.reason}"
    return (
        f"finite differences  {along.gradient:+.6e} against {along.difference:+.6e}, apart "
        f"{along.apart:.1e}, scatter {along.scatter:.1e}: {state}"
    )


def _recomputed(found: FunctionCheck) -> Iterator[str]:
    if not found.sites:
        yield "recomputed values   none: no equation is inside a checkpoint that is looked into"
        return
    same = found.compared - len(found.wrong_values)
    yield (
        f"recomputed values   op by op {same} of {found.compared} that are seen in both passes are "
        f"the forward's, bit for bit ({count(found.sites, 'equation')} inside checkpoints)"
    )
    for value in found.wrong_values[:SHOWN]:
        yield f"                    {_value(value)}"


def _in_compiled(compiled: Compiled) -> Iterator[str]:
    if compiled.first is None:
        yield (
            "compiled            no value was seen to differ: what one wants to see the compiler "
            "has to compute as it stands"
        )
        return
    yield f"first to differ     compiled, {_value(compiled.first)}"
    if not compiled.is_undisturbed:
        yield (
            "                    the program that shows it has other gradients than the one in "
            "question: looking at it changed what the compiler made"
        )
    farthest = compiled.farthest
    if farthest is not None and farthest.apart > 10.0 * compiled.first.apart:
        yield f"                    from there it grows: {_value(farthest)}"


def _value(value: Recomputed) -> str:
    size = "not a number" if value.ulp is None else f"{value.ulp:.3g} ulp"
    place = value.source if value.line in value.source else f"{value.source}, {value.line}"
    return (
        f"`{value.primitive}` at {place}, checkpoint {value.region}: element "
        f"{list(value.element)}: {value.forward!r} became {value.again!r} ({size}), at most "
        f"{value.apart:.1e} of the largest"
    )
