"""What to say of a program whose loss or gradients are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence


def loss_warning(strategy: str, loss: float) -> str | None:
    """The warning about a loss that is not finite; None for any other."""
    if math.isfinite(loss):
        return None
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
