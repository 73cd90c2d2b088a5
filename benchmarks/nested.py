"""What regions in regions cost: a level of the forward pass, an op that is computed again.

`scripts/bench engine nested` prints it. Each level has one op before the level inside it, and in
one of two programs one after it. Without that op a level computes one value again; with it, all
that is inside, depth * depth ops in total, as in JAX and PyTorch: a level around knows nothing of
what an inner one computed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np

from ckptcli.autodiff.device import device
from ckptcli.checkpoint.policies import nothing_saveable

Show = Callable[[str, float, float], None]

ROUNDS = 5


def pass_s(depth: int, is_followed: bool) -> tuple[float, float]:
    """Processor time of forward and backward, the least of some rounds."""
    target = device().autodiff()
    x = target.tensor(np.array([0.5]), "float64").require_grad()
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        start_s = time.process_time()
        y, regions = x, []
        for _ in range(depth):
            regions.append(target.open_region("level", nothing_saveable))
            y = y.sin()
        for region in regions[::-1]:
            if is_followed:
                y = y.sin()
            target.close_region(region)
        middle_s = time.process_time()
        y.backward()
        found.append((middle_s - start_s, time.process_time() - middle_s))
    return min(forward_s for forward_s, _ in found), min(backward_s for _, backward_s in found)


def nested(show: Show) -> None:
    print(f"nested: regions in regions, the least of {ROUNDS} rounds")
    short, long = pass_s(1_000, False), pass_s(20_000, False)
    for index, phase in enumerate(("forward", "backward")):
        a_level = [short[index] / 1_000, long[index] / 20_000]
        print(f"  {phase}: {a_level[0] * 1e6:.2f} and {a_level[1] * 1e6:.2f} microseconds a level")
        show(f"{phase}: a level of 20,000 / of 1,000", a_level[1] / a_level[0], 2.5)
    followed = {depth: pass_s(depth, True) for depth in (50, 100, 400)}
    again = {depth: spent[1] / depth**2 for depth, spent in followed.items()}
    print(f"  an op after each level: {again[400] * 1e6:.2f} microseconds an op computed again")
    show("forward: a level of 400 / of 50", followed[400][0] / followed[50][0] / 8, 2.0)
    show("backward: an op computed again of 400 / of 100", again[400] / again[100], 1.3)
