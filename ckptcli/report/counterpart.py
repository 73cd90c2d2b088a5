"""What a plan of a program is in JAX, for the eye: what it takes there, what is lost, the code."""

from __future__ import annotations

from collections.abc import Iterator

from ckptcli import units
from ckptcli.planning.tape.held_names import Counterpart


def counterpart_sentences(found: Counterpart) -> Iterator[str]:
    """What comes closest, and what of the plan it does not do."""
    yield (
        f"in JAX {found.strategy} comes closest: residuals {units.size(found.residual_bytes)} "
        f"instead of {units.size(found.none_residual_bytes)}, XLA's plan "
        f"{units.size(found.peak_bytes)} instead of {units.size(found.none_peak_bytes)} above "
        "parameters and input; no budget holds there, XLA orders and merges by itself"
    )
    if found.lost:
        yield f"lost: {'; '.join(found.lost)}"


def counterpart_code(found: Counterpart) -> Iterator[str]:
    """As it is, so that it can be pasted; nothing where there is none."""
    if found.code:
        yield ""
        yield "# around what makes one layer"
        yield from found.code.rstrip("\n").split("\n")
