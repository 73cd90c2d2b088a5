"""The float dtypes that a tensor may have, as facts that need no array library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dtype:
    """A float dtype.

    Attributes:
        element_bytes: the size of one element.
        largest: the largest finite value; beyond it is infinity.
        epsilon: the distance from 1 to the next value above it.
        host: the NumPy dtype that holds its values; bfloat16 has none of its own.
    """

    element_bytes: int
    largest: float
    epsilon: float
    host: str


DTYPES = {
    "float32": Dtype(4, 3.4028234663852886e38, 2.0**-23, "float32"),
    "float64": Dtype(8, 1.7976931348623157e308, 2.0**-52, "float64"),
    "float16": Dtype(2, 65504.0, 2.0**-10, "float16"),
    "bfloat16": Dtype(2, 3.3895313892515355e38, 2.0**-7, "float32"),
}
