"""What to say of a program whose loss or gradients are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ckptcli.backends.dtypes import DTYPES

SMALL_RANGE = 1e6
"""A dtype that ends below this overflows in networks that have not diverged."""


def loss_warning(strategy: str, loss: float, dtype: object = None) -> str | None:
    """The warning about a loss that is not finite; None for any other."""
    if math.isfinite(loss):
        return None
    facts = DTYPES.get(str(dtype))
    if facts is not None and facts.largest < SMALL_RANGE:
        return (
            f"{strategy}: the loss is {loss}: {dtype} ends at {facts.largest:g} and a value went "
            "beyond it; use --dtype bfloat16 or float32, or smaller data"
        )
    return (
        f"{strategy}: the loss is {loss}: the figures are those of a program that has diverged; "
        "use fewer layers, another seed or smaller data"
    )


def gradient_warnings(strategy: str, gradients: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """A warning for each gradient with values that are not finite."""
    for name, values in gradients.items():
        count = sum(not math.isfinite(value) for value in values)
        if count:
            yield (
                f"{strategy}: the gradient of `{name}` is not finite in {count} of {len(values)} "
                "places; JSON has null there"
            )
