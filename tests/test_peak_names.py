"""Which moment a peak is, and what each tensor is said to be at it: by hand, in the run's record.

Of equal peaks the first one counts. A storage is what it became with the last thing that the engine
said of it by then, at that very tick included.
"""

from __future__ import annotations

import json
from typing import Any

from tests.program_kit import Command

CHAIN = """
import numpy as np

def make(device):
    x = device.tensor(np.full(1024, 0.3)).require_grad()
    kept = []

    def loss():
        kept[:] = [x]
        for _ in range(5):
            kept.append(kept[-1].sin())
        return (kept[-1] * 2.0).sum()

    return loss
"""
PRODUCT = """
import numpy as np

def make(device):
    x = device.tensor(np.full(1024, 0.3)).require_grad()
    kept = []

    def loss():
        u, v = -x, x + 1.0
        y = u * v
        kept[:] = [u, v, y]
        return (y * 2.0).sum()

    return loss
"""
TENSOR_BYTES = 8 * 1024


def at_peak(told: Command, program: str) -> list[dict[str, Any]]:
    """The tensors live at the peak that are no scalars, of `none`."""
    command = ["run", "--strategy", "none", "--reps", "1", "--json"]
    code, out, _ = told(program, *command)
    assert code == 0
    (strategy,) = json.loads(out)["strategies"]
    live: list[dict[str, Any]] = strategy["peak_live"]["largest"]
    return [tensor for tensor in live if tensor["bytes"] == TENSOR_BYTES]


def gradients(live: list[dict[str, Any]]) -> list[tuple[int | None, str]]:
    """What the backward pass made of them."""
    return sorted(
        ((t["node"], t["why"]) for t in live if t["why"] not in ("parameter", "saved", "output")),
        key=str,
    )


def test_of_equal_peaks_the_first_one_counts(told: Command) -> None:
    """Nodes 1 to 5 are the sines, all held. The step of their double makes the gradient of 5.

    That of 5 makes a cosine beside it and writes the gradient of 4 over it: the first peak. The
    steps of 4, 3, 2 and 1 do the same.
    """
    live = at_peak(told, CHAIN)
    assert gradients(live) == [(5, "gradient"), (None, "temporary")]
    assert len(live) == 1 + 5 + 2


def test_a_tensor_is_what_it_was_said_to_be_at_the_tick_of_the_peak(told: Command) -> None:
    """Nodes: x 0, u 1, v 2, y 3. The step of 2 y makes the gradient of y.

    That of y makes the gradient of u, the peak, and writes v's over y's own. Nothing is made or
    freed from there on, so that the tick stays: v's is handed on to x, and u's is added to it.
    """
    live = at_peak(told, PRODUCT)
    assert gradients(live) == [(0, "gradient of a parameter"), (1, "gradient")]
