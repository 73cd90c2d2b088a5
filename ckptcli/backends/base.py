"""What the engine needs from an array library.

The op table is written against a `Namespace` (the functions of the array API standard that it
uses, plus what the standard lacks), so that no op knows a library's name.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol


class Array(Protocol):
    """An n-dimensional array of one dtype, at least rank 1."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def nbytes(self) -> int: ...


class Namespace(Protocol):
    """The functions that ops call.

    Element-wise functions take an optional array to write into as their last positional argument
    (None: a new array). Every result has rank 1 or more. Beyond the array API standard:
    `sigmoid(x)`, `sigmoid_gradient(x, gradient, out)`, `erf(x)`, `sum_all(x)`, `ones_seed(like)`,
    `storage_id(x)`.
    """

    def __getattr__(self, name: str) -> Any: ...


class Backend(Protocol):
    """An array library on one device."""

    @property
    def name(self) -> str:
        """The name on the command line, `numpy`."""

    @property
    def label(self) -> str:
        """The device in Burn's wording, `Numpy(Cpu)`."""

    @property
    def namespace(self) -> Namespace:
        """What ops call."""

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        """`data` as an array of rank 1 or more; without `copy`, `data` itself where it is one.

        Raises:
            DtypeError: a dtype that the engine does not have.
        """

    def checked_dtype(self, dtype: str) -> str:
        """`dtype` itself.

        Raises:
            DtypeError: a dtype that the engine does not have.
        """

    def to_numpy(self, array: Array) -> Any:
        """A read-only NumPy array with the same values."""

    def quiet(self) -> AbstractContextManager[object]:
        """Floating-point warnings off inside: a profile looks at the loss instead."""
