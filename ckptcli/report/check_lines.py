"""What was found out of a checked strategy, a line each: one order and one wording for all.

Invariant: a line begins with what it is about, in `LABEL` columns; what belongs to it follows below
without.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from ckptcli import units
from ckptcli.measure import OURS
from ckptcli.measure.check import Check, WrongGradient
from ckptcli.measure.difference import BesideTheory, DirectionalDifference
from ckptcli.measure.function_check import Compiled
from ckptcli.measure.row import Agreement
from ckptcli.measure.wrong_values import EquationValue, WrongValue
from ckptcli.report.state_lines import state_lines
from ckptcli.units import are, count

LABEL = 20
HANG = 22
"""Where a line goes on that is too long for the screen, the indent of all included."""

SHOWN = 5
SHOWN_GRADIENTS = 8

VERDICTS = {True: ("passed", "green"), False: ("FAILED", "red"), None: (units.UNKNOWN, "yellow")}
"""The word for `passed`, and its colour."""


def check_lines(found: Check) -> Iterator[str]:
    """The evidence; one line where there is nothing to check."""
    if found.reason is not None:
        yield from _about(units.UNKNOWN, [found.reason])
        return
    yield from _about("what it is", filter(None, [found.counterpart]))
    yield from _about("run-to-run spread", _spread(found))
    yield from _about("gradients", _gradients(found))
    yield from _about(
        "no gradient", _names(found.unused, "the loss never uses {}, or only detached")
    )
    yield from _about(
        "not compared", _names(found.not_compared, "rounding alone: the gradient of {}")
    )
    yield from _about(
        "not finite", _names(found.not_finite, "nan or infinity in the gradient of {}")
    )
    yield from _about("exact value", _theory(found.theory))
    yield from _differences(found)
    yield from _recomputed(found)
    yield from _about("decompositions", _gauges(found))
    yield from _about("random draws", _draws(found))
    yield from _about("state", state_lines(found.state))
    for what, why in found.untold.items():
        yield from _about(what, [f"{units.UNKNOWN}: {why}"])
    yield from _about("finding", filter(None, [found.finding]))


def _about(label: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield f"{label:<{LABEL}}{text}"
        label = ""


def _names(names: Sequence[str], sentence: str) -> list[str]:
    return [sentence.format(units.some(names, SHOWN))] if names else []


def _is_by_spread(found: Check) -> bool:
    return found.spread is not None and not found.by_bits


def _measure(found: Check) -> str:
    return "within the run-to-run spread" if _is_by_spread(found) else "bit for bit"


def _spread(found: Check) -> Iterator[str]:
    if found.spread is not None:
        why = ": this library is not deterministic" if _is_by_spread(found) else ""
        yield f"two passes of `none` lie {found.spread:.1e} apart{why}"


def _gradients(found: Check) -> Iterator[str]:
    """Bits where they are compared, sizes where that says more, and what differs."""
    if found.by_bits or _is_by_spread(found):
        same = found.gradients - len(found.gradients_apart)
        yield f"{same} of {found.gradients} {are(same)} `none`'s, {_measure(found)}"
    if found.gradients_apart or not found.by_bits:
        yield from (_beside(known, found) for known in found.agreements)
    yield from _wrong_gradients(found)


def _beside(known: Agreement, found: Check) -> str:
    whose = "ckpt's" if known.beside == OURS else f"those of `{known.beside}`"
    agrees = "agrees, as sums in another order do" if found.by_bits else "agrees"
    how = ""
    if found.op_by_op is not None:
        how = "op by op " if known is found.op_by_op else "compiled "
    return (
        f"{how}within {known.gradient_relative:.2g} of {whose}, the loss within "
        f"{known.loss_relative:.2g}: {agrees if known.agrees else 'DIFFERS'}, tolerance "
        f"{known.tolerance:g}"
    )


def _wrong_gradients(found: Check) -> Iterator[str]:
    apart, worst = found.gradients_apart, found.worst_gradient
    shown = apart[:SHOWN_GRADIENTS]
    if worst is not None and worst not in shown:
        shown = [*shown[:-1], worst]
    for wrong in shown:
        mark = "worst: " if wrong is worst and len(apart) > 1 else ""
        yield f"{mark}{_gradient(wrong)}"
    if len(apart) > len(shown):
        yield f"and {len(apart) - len(shown)} more, which --json lists"


def _gradient(wrong: WrongGradient) -> str:
    moved = wrong.worst.found - wrong.worst.expected
    inside = f" (block `{wrong.block}`)" if wrong.block else ""
    return f"{wrong.parameter}{inside}: {wrong.worst}, moved by {moved:+.2e}"


def _theory(found: BesideTheory | None) -> Iterator[str]:
    if found is not None:
        yield (
            f"{found.gradient:.15f} against {found.exact:.15f}, apart {found.apart:.1e}: "
            f"{'agrees' if found.agrees else 'DIFFERS'}, allowed {found.allowed:.1e}"
        )


def _differences(found: Check) -> Iterator[str]:
    label = "finite differences"
    if found.why_no_differences is not None:
        yield from _about(label, [f"left out: {found.why_no_differences}"])
    if found.differences and not found.has_float64:
        yield from _about(label, ["in NumPy, since the device has no float64"])
    for direction in found.differences:
        yield from _about(label, [_direction(direction)])
    if found.differences and not found.usable_directions:
        every = found.unusable_directions
        which = "the one direction is" if every == 1 else f"all {every} directions are"
        yield from _about(
            "", [f"{which} unusable: whether the gradient is that of the loss is not decided here"]
        )


def _direction(direction: DirectionalDifference) -> str:
    state = "agrees" if direction.agrees else "DIFFERS"
    state = state if direction.is_usable else f"unusable, {direction.reason}"
    return (
        f"{direction.gradient:+.6e} against {direction.difference:+.6e}, apart "
        f"{direction.apart:.1e}, scatter {direction.scatter:.1e}: {state}"
    )


def _recomputed(found: Check) -> Iterator[str]:
    if found.compared is None:
        return
    yield from _about("recomputed values", [_compared(found, found.compared)])
    yield from _about("first to differ", _firsts(found))
    if found.other_ops:
        ops = count(len(found.other_ops), "op")
        yield from _about(
            "other ops",
            [
                f"{ops} of a recomputation had no counterpart in the forward, the first "
                f"{found.other_ops[0]}"
            ],
        )
    if found.compiled is not None:
        yield from _compiled(found.compiled)


def _compared(found: Check, compared: int) -> str:
    """How many values are the forward's, and of which it is known."""
    if found.checkpoints == 0:
        return "none: no checkpoint was made"
    if found.sites == 0:
        return "none: no equation is inside a checkpoint that is looked into"
    made = "" if found.checkpoints is None else count(found.checkpoints, "checkpoint")
    if made and not compared:
        return f"none: {made} had no op to run again"
    same = found.same_bits
    if same is None:
        same = compared - len(found.wrong_values)
    inside = f" in {made}" if made else ""
    if found.sites is None:
        return f"{same} of {compared}{inside} {are(same)} the forward's, {_measure(found)}"
    return (
        f"op by op {same} of {compared} that are seen in both passes are the forward's, bit for "
        f"bit ({count(found.sites, 'equation')} inside checkpoints)"
    )


def _firsts(found: Check) -> Iterator[str]:
    """The first value of each part that has one."""
    firsts: dict[Hashable, WrongValue] = {}
    for value in found.wrong_values:
        firsts.setdefault(value.part, value)
    yield from map(str, list(firsts.values())[:SHOWN])
    if len(firsts) > SHOWN:
        yield f"and {len(firsts) - SHOWN} more"


def _compiled(found: Compiled) -> Iterator[str]:
    if found.first is None:
        yield from _about(
            "compiled",
            [
                "no value was seen to differ: what one wants to see the compiler has to compute as "
                "it stands"
            ],
        )
        return
    yield from _about("first to differ", _in_compiled(found, found.first))


def _in_compiled(found: Compiled, first: EquationValue) -> Iterator[str]:
    yield f"compiled, {first}"
    if not found.is_undisturbed:
        yield (
            "the program that shows it has other gradients than the one in question: looking at "
            "it changed what the compiler made"
        )
    if found.farthest is not None and found.farthest.apart > 10.0 * first.apart:
        yield f"from there it grows: {found.farthest}"


def _gauges(found: Check) -> Iterator[str]:
    """What differs in decompositions, in the order of the program; those with signs first."""
    by_kind = sorted(found.gauges, key=lambda g: (not (g.flipped or g.turned), g.node))
    for gauge in by_kind[:SHOWN]:
        layer = f"{gauge.layer_name}, " if gauge.layer_name else ""
        yield f"{layer}node {gauge.node} ({gauge.op}) differs in {gauge}"
    if len(by_kind) > SHOWN:
        yield f"and {len(by_kind) - SHOWN} more"


def _draws(found: Check) -> Iterator[str]:
    if found.draws is not None:
        own, reference = found.draws
        yield f"{own}, " + ("as under `none`" if own == reference else f"`none` takes {reference}")
    if found.own_draws:
        yield (
            f"{count(len(found.own_draws), 'op')} from a torch.Generator of your own, which no "
            f"checkpoint sets back, the first {found.own_draws[0]}"
        )
