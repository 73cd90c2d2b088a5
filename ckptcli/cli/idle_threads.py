"""How long idle threads of the BLAS keep their cores: less than it takes to measure a pass.

OpenBLAS's threads wait for the next product in a busy loop, by default some 20 ms, and take the
cores that element-wise kernels and other libraries of the process would compute on.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "OPENBLAS_THREAD_TIMEOUT"

TIMEOUT = "19"
"""2^19 cycles, 0.2 ms: longer than the element-wise calls between two products of n = 256, for each
of which threads would be woken otherwise, and short beside those of n = 1024."""


def let_go_of_cores() -> None:
    """Set it for the process and its children; what a user has set stays.

    OpenBLAS reads it when NumPy is loaded: in a process that has loaded it nothing is changed.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault(VARIABLE, TIMEOUT)
