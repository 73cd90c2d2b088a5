"""What `ckpt check --engine` says of a strategy in another library: lines, and the same as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcli.measure.row import Agreement
    from ckptcli.profiling.peer_check import BesideTheory, PeerCheck
    from ckptcli.verify.differences import DirectionalDifference

SHOWN = 5

ONLY_IN_ENGINES: dict[str, object] = {
    "reason": None,
    "counterpart": "",
    "agreement": None,
    "plain_agreement": None,
    "theory": None,
    "same_bits": None,
    "untold": {},
    "finding": None,
}
"""What a check of ckpt's own has for the keys that it has no use for."""

ONLY_OURS: dict[str, object] = {
    "draws": None,
    "spread": None,
    "has_float64": True,
    "gauges": [],
    "unused": [],
}
"""What a check in another library has for the keys that it has no use for."""


def peer_data(found: PeerCheck) -> dict[str, Any]:
    """The check as data, under the keys that one of ckpt's own has, and more."""
    data = {**ONLY_OURS, **asdict(found)}
    for name in ("agreement", "plain_agreement", "theory"):
        held = getattr(found, name)
        if held is not None:
            data[name]["agrees"] = held.agrees
    if found.theory is not None:
        data["theory"]["apart"] = found.theory.apart
    data["untold"] = dict(found.untold or {})
    return data


def peer_lines(found: PeerCheck) -> Iterator[str]:
    """The evidence, a line each; one line where there is nothing to check."""
    if found.reason is not None:
        yield f"n/a                 {found.reason}"
        return
    if found.counterpart:
        yield f"what it is          {found.counterpart}"
    for known in (found.plain_agreement, found.agreement):
        if known is not None:
            yield f"gradients           {_beside(known)}"
    for name, difference in found.wrong_gradients:
        moved = difference.found - difference.expected
        yield f"                    {name}: {difference}, moved by {moved:+.2e}"
    if found.not_finite:
        names = ", ".join(found.not_finite)
        yield f"not finite          nan or infinity in the gradient of {names}"
    if found.theory is not None:
        yield f"exact value         {_beside_theory(found.theory)}"
    for direction in found.differences:
        yield difference_line(direction)
    if found.differences and not found.usable_directions:
        yield "                    no direction is usable: the loss decides nothing here"
    if found.compared is not None:
        of_all = f"{found.same_bits} of {found.compared}"
        yield f"recomputed values   {of_all} are the forward's, bit for bit"
    for value in found.wrong_values[:SHOWN]:
        yield f"                    layer {value.layer}, {value.name}: {value.difference}"
    for what, why in (found.untold or {}).items():
        yield f"{what:<19} n/a: {why}"
    if found.finding is not None:
        yield f"finding             {found.finding}"


def difference_line(direction: DirectionalDifference) -> str:
    """One finite difference and what it says of the gradient."""
    state = "agrees" if direction.agrees else "DIFFERS"
    state = state if direction.is_usable else f"unusable, {direction.reason}"
    return (
        f"finite differences  {direction.gradient:+.6e} against {direction.difference:+.6e}, "
        f"apart {direction.relative_error:.1e}, scatter {direction.scatter:.1e}: {state}"
    )


def _beside(known: Agreement) -> str:
    whose = "ckpt's" if known.beside == "ckpt" else f"those of `{known.beside}`"
    return (
        f"within {known.gradient_relative:.2g} of {whose}, the loss within "
        f"{known.loss_relative:.2g}: {_word(known.agrees)}, tolerance {known.tolerance:g}"
    )


def _beside_theory(found: BesideTheory) -> str:
    return (
        f"{found.gradient:.15f} against {found.exact:.15f}, apart {found.apart:.1e}: "
        f"{_word(found.agrees)}, allowed {found.allowed:.1e}"
    )


def _word(agrees: bool) -> str:
    return "agrees" if agrees else "DIFFERS"
