"""An input that is drawn, as `--input` says it: `4x3x224x224`, `int64:4x512`.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ckptcli.errors import UsageError

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATS, *INTEGERS, *COMPLEX, "bool")

_SHAPE = re.compile(r"[0-9]{1,12}(x[0-9]{1,12})*")


@dataclass(frozen=True, slots=True)
class DrawnInput:
    """A tensor to draw.

    Attributes:
        shape: sizes of its dimensions, outermost first.
        dtype: one of `DTYPES`; None for float32, or the module's where it is given one.
    """

    shape: tuple[int, ...]
    dtype: str | None = None


def parsed_input(text: str) -> DrawnInput:
    """The tensor that `[DTYPE:]SHAPE` says.

    Raises:
        UsageError: it is no such text.
    """
    dtype, colon, shape = text.rpartition(":")
    if not _SHAPE.fullmatch(shape):
        raise UsageError(
            f"--input {text}: `{shape}` is no shape",
            "write sizes with x between, 4x3x224x224, or int64:4x512",
        )
    if colon and dtype not in DTYPES:
        raise UsageError(f"--input {text}: unknown dtype `{dtype}`", f"known: {', '.join(DTYPES)}")
    return DrawnInput(tuple(map(int, shape.split("x"))), dtype if colon else None)
