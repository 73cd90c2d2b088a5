"""The NumPy backend: arrays in host memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Array, Namespace
from ckptcli.errors import DtypeError

FLOAT_DTYPES = ("float32", "float64")


class NumpyBackend:
    """Arrays are `numpy.ndarray` of float32 or float64."""

    name = "numpy"
    label = "Numpy(Cpu)"

    def __init__(self, namespace: Namespace = numpy_namespace) -> None:
        self.namespace = namespace

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        try:
            array = np.array(data, dtype=dtype) if copy else np.asarray(data, dtype=dtype)
        except TypeError as error:
            raise _dtype_error(dtype) from error
        if dtype is None and not (hasattr(data, "dtype") and array.dtype.name in FLOAT_DTYPES):
            if array.dtype.kind not in "biuf":
                raise _dtype_error(array.dtype)
            array = array.astype(np.float32)
        if array.dtype.name not in FLOAT_DTYPES:
            raise _dtype_error(array.dtype)
        return array.reshape(1) if array.ndim == 0 else array

    def checked_dtype(self, dtype: str) -> str:
        if dtype not in FLOAT_DTYPES:
            raise _dtype_error(dtype)
        return dtype

    def to_numpy(self, array: Any) -> Any:
        view = np.asarray(array).view()
        view.flags.writeable = False
        return view

    def quiet(self) -> AbstractContextManager[object]:
        return np.errstate(all="ignore")


def _dtype_error(dtype: object) -> DtypeError:
    return DtypeError(f"a tensor cannot have dtype `{dtype}`", f"use {' or '.join(FLOAT_DTYPES)}")
