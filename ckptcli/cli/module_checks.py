"""What `ckpt check --module` says of each strategy: lines, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ckptcli.cli.json_output import print_json_line
from ckptcli.cli.text_page import TextPage
from ckptcli.units import count

if TYPE_CHECKING:
    from ckptcli.measure.module_check import Moved, Place
    from ckptcli.options.commands.check import CheckOptions
    from ckptcli.profiling.module_check import ModuleCheck, WrongGradient, WrongValue

SHOWN = 5
WORDS = {True: ("passed", "green"), False: ("FAILED", "red"), None: ("n/a", "yellow")}


def print_checks(title: str, checks: Sequence[ModuleCheck], options: CheckOptions) -> None:
    """The checks, on the screen or as data."""
    if options.data.as_json:
        print_json_line(_as_object(title, checks))
        return
    page = TextPage(options.screen)
    page.print(title)
    for check in checks:
        page.print(f"{check.strategy}: {page.styled(*WORDS[check.passed])}")
        for line in check_lines(check):
            page.print(f"  {line}", hang=22)


def _as_object(title: str, checks: Sequence[ModuleCheck]) -> dict[str, Any]:
    from ckptcli.cli.peer_checks import ONLY_IN_ENGINES, ONLY_OURS
    from ckptcli.cli.workload_checks import SCHEMA
    from ckptcli.measure.codec import with_finite_numbers

    warnings: list[str] = []
    data = [{**ONLY_OURS, **ONLY_IN_ENGINES, **_check_data(found)} for found in checks]
    finite = with_finite_numbers(data, "checks", warnings)
    return {"schema": SCHEMA, "workload": title, "checks": finite, "warnings": warnings}


def _check_data(found: ModuleCheck) -> dict[str, Any]:
    data = asdict(found)
    known, worst = found.agreement, found.worst_gradient
    if known is not None:
        data["agreement"]["agrees"] = known.agrees
    data["plain_agreement"] = data.pop("agreement")
    data["own_draws"] = data.pop("draws")
    data["gradients_apart"] = data.pop("wrong_gradients")
    values = data.pop("wrong_values")
    same = found.compared - len(found.wrong_values)
    return {
        **data,
        "agreement": None,
        "draws": None,
        "wrong_gradients": [
            [wrong.parameter, asdict(wrong.worst)] for wrong in found.wrong_gradients
        ],
        "wrong_values": [{**value.pop("place"), **value} for value in values],
        "engine": "torch",
        "same_bits": None if known is None else same,
        "worst_gradient": None if worst is None else asdict(worst),
        "wrong_blocks": found.wrong_blocks,
        "differences": [],
        "usable_directions": 0,
        "unusable_directions": 0,
        "passed": found.passed,
    }


def check_lines(found: ModuleCheck) -> Iterator[str]:
    """The evidence, a line each."""
    if found.agreement is None:
        yield f"n/a                 {found.reason}"
        return
    if found.counterpart:
        yield f"what it is          {found.counterpart}"
    if found.spread is not None:
        yield f"run-to-run spread   two passes of `none` lie {found.spread:.1e} apart"
    yield from _gradients(found)
    if found.not_finite:
        yield f"not finite          nan or infinity in the gradient of {_some(found.not_finite)}"
    yield from _recomputed(found)
    yield from _draws(found)
    yield from _state(found.state)


def _gradients(found: ModuleCheck) -> Iterator[str]:
    known = found.agreement
    assert known is not None
    same = found.gradients - len(found.wrong_gradients)
    yield f"gradients           {same} of {found.gradients} are `none`'s, bit for bit"
    worst = found.worst_gradient
    if worst is None:
        return
    first = found.wrong_gradients[0]
    yield f"                    first: {_gradient(first)}"
    if worst is not first:
        yield f"                    worst: {_gradient(worst)}"
    word = "a sum in another order" if known.agrees else "DIFFERS"
    yield (
        f"                    at most {known.gradient_relative:.2g} of the largest element apart, "
        f"the loss {known.loss_relative:.2g}: {word}, tolerance {known.tolerance:g}"
    )


def _gradient(wrong: WrongGradient) -> str:
    moved = wrong.worst.found - wrong.worst.expected
    inside = f" (block `{wrong.block}`)" if wrong.block else ""
    return f"`{wrong.parameter}`{inside}: {wrong.worst}, moved by {moved:+.2e}"


def _recomputed(found: ModuleCheck) -> Iterator[str]:
    if not found.checkpoints:
        yield "recomputed values   none: no checkpoint was made"
        return
    inside = count(found.checkpoints, "checkpoint")
    if not found.compared:
        yield f"recomputed values   none: {inside} had no op to run again"
        return
    same, wrong = found.compared - len(found.wrong_values), found.wrong_values
    yield (
        f"recomputed values   {same} of {found.compared} in {inside} are the forward's, bit for bit"
    )
    if wrong:
        yield f"first to differ     {_value(wrong[0])}"
        for block in found.wrong_blocks[1 : SHOWN + 1]:
            first = next(value for value in wrong if tuple(value.place.block) == block)
            yield f"                    {_value(first)}"
        left = len(found.wrong_blocks) - SHOWN - 1
        if left > 0:
            yield f"                    and in {count(left, 'more block')}"
    if found.other_ops:
        yield (
            f"other ops           {count(len(found.other_ops), 'op')} of a recomputation had no "
            f"counterpart in the forward, the first {_place(found.other_ops[0])}"
        )


def _value(wrong: WrongValue) -> str:
    told = "" if wrong.difference is None else f": {wrong.difference}"
    return f"{_place(wrong.place)}{told}"


def _place(place: Place) -> str:
    at = place.source or place.library
    beside = f" ({place.library})" if place.library not in ("", at) else ""
    inside = "" if place.module in place.block else f", in `{place.module}`"
    return (
        f"block {block_name(place.block)}{inside}, op {place.index} (aten.{place.op}) at "
        f"{at}{beside}"
    )


def block_name(block: Sequence[str]) -> str:
    """The first and the last of the modules under one checkpoint."""
    if not block:
        return "(module)"
    return f"`{block[0]}`" + (f" to `{block[-1]}`" if len(block) > 1 else "")


def _draws(found: ModuleCheck) -> Iterator[str]:
    if found.draws:
        yield (
            f"random draws        {count(len(found.draws), 'op')} from a torch.Generator of your "
            f"own, which no checkpoint sets back, the first {_place(found.draws[0])}"
        )


def _state(state: Sequence[Moved]) -> Iterator[str]:
    """What moves alike in one line."""
    groups: dict[tuple[object, ...], list[Moved]] = {}
    for moved in state:
        key = (moved.kind, moved.is_moved, moved.is_moved_again, moved.is_apart, moved.values)
        groups.setdefault(key, []).append(moved)
    label = "state"
    for group in groups.values():
        text = _alike(group)
        if text:
            yield f"{label:<20}{text}"
            label = ""


def _alike(group: Sequence[Moved]) -> str:
    first = group[0]
    names = [moved.name for moved in group]
    is_are = "are" if len(names) > 1 else "is"
    blocks = list(dict.fromkeys(block for moved in group for block in moved.blocks))
    inside = block_name(blocks[0])
    inside += f" and {count(len(blocks) - 1, 'more block')}" if len(blocks) > 1 else ""
    parts = [f"moved by the forward of {inside}"] if first.is_moved else []
    if first.is_moved_again:
        parts.append(
            "once more when it is computed again" if parts else "moved when computed again"
        )
    if first.is_apart:
        parts.append(_apart(first, "that" if parts else inside))
    if first.kind == "random state" and not first.is_apart and not first.is_moved_again:
        parts.append("set back when it is computed again, which draws the same")
    return f"{_named(first.kind, names)} {is_are} {', '.join(parts)}" if parts else ""


def _named(kind: str, names: Sequence[str]) -> str:
    if kind == "random state":
        return f"the {kind} {' and '.join(names)}"
    return f"{kind}{'s' if len(names) > 1 else ''} {_some([f'`{name}`' for name in names])}"


def _apart(moved: Moved, what: str) -> str:
    begins = f"when the recomputation of {what} begins" if what != "that" else "when that begins"
    if moved.values is None:
        return f"other than in the forward {begins}"
    return f"{moved.values[1]} and no longer {moved.values[0]} {begins}"


def _some(names: Sequence[str]) -> str:
    left = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {left} more" if left > 0 else "")
