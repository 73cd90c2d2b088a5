"""The binomial law of reversing equal steps (Griewank and Walther, 2000), in closed form.

With s slots, x_0's among them, `reach(s, r) = C(s + r, s)` steps can be reversed if none is
advanced more than r times. The least number of advances is `r n - C(s + r, r - 1)` for the smallest
r with `reach(s, r) >= n`.
"""

from __future__ import annotations

from math import comb, isqrt


def reach(slots: int, sweeps: int) -> int:
    """How long a chain `slots` slots and `sweeps` sweeps reverse; 0 for no slot or sweep left."""
    return comb(slots + sweeps, slots) if slots >= 0 and sweeps >= 0 else 0


def sweeps(n: int, slots: int) -> int:
    """The smallest number of sweeps that reverses n steps with at least one slot."""
    if slots == 1:
        return n - 1
    if slots == 2:
        low = max(0, (isqrt(8 * n) - 3) // 2 - 1)
    else:
        low, high = 0, 1
        while reach(slots, high) < n:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reach(slots, middle) < n else (low, middle)
    while reach(slots, low) < n:
        low += 1
    return low


def advances(n: int, slots: int) -> int:
    """The least number of advances, t(n, s)."""
    r = sweeps(n, slots)
    return r * n - comb(slots + r, r - 1) if r else 0


def split(n: int, slots: int, r: int) -> int:
    """How far to advance before the next state is stored; r is `sweeps(n, slots)`, n over 1.

    The first part then needs no more than r - 1 further sweeps, the rest with a slot less no more
    than r, and neither falls short of what it can do: the sum is least.
    """
    if slots == 1:
        return n - 1
    return max(reach(slots, r - 2), n - reach(slots - 1, r), 1)
