"""What `ckpt compare` costs a sample, which must not grow with the number of samples.

    scripts/bench compare [SAMPLES ...]

The samples of each size are drawn anew; the time is that of one ratio with its interval.
"""

from __future__ import annotations

import random
import sys
import time

from ckptcli.measure.bootstrap import unpaired_ratio

SIZES = (100, 1_000, 10_000)
PROCESSES = 5


def drawn(count: int, draw: random.Random) -> list[list[float]]:
    """Times of several processes, `count` in all."""
    return [
        [draw.lognormvariate(0.0, 0.1) for _ in range(count // PROCESSES)] for _ in range(PROCESSES)
    ]


def main() -> None:
    draw = random.Random(0)
    for size in map(int, sys.argv[1:]) if sys.argv[1:] else SIZES:
        sides = drawn(size, draw), drawn(size, draw)
        began = time.perf_counter()
        unpaired_ratio(*sides, seed=size)
        spent_s = time.perf_counter() - began
        print(f"{size:>8,} samples a side: {spent_s:.2f} s, {spent_s / size * 1e6:.0f} µs a sample")


if __name__ == "__main__":
    main()
