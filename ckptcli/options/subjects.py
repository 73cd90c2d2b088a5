"""What a command can be about, by name."""

from __future__ import annotations

WORKLOAD = "workload"
"""A program under strategies, timed and compared."""

EXPERIMENT = "experiment"
"""What measures something of its own, without strategies."""

MODULE = "module"
"""A PyTorch module of the user's own."""

FUNCTION = "function"
"""A JAX function of the user's own."""

SUBJECTS = frozenset({WORKLOAD, EXPERIMENT, MODULE, FUNCTION})
