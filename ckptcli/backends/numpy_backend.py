"""The NumPy backend: arrays in host memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ckptcli.backends import numpy_namespace
from ckptcli.backends.base import Array, Backend, Namespace, dtype_error
from ckptcli.backends.lanes import lanes_of
from ckptcli.backends.loan import Loan
from ckptcli.backends.numpy_lanes import on_lanes


class NumpyBackend(Backend):
    """Arrays are `numpy.ndarray` of float32 or float64.

    Not of float16: NumPy rounds it in software and multiplies matrices of it without the BLAS, and
    the polynomials of erf leave its range.
    """

    name = "numpy"
    label = "Numpy(Cpu)"
    library = f"NumPy {np.__version__}"
    dtypes = ("float32", "float64")
    sees_kernel_memory = True
    can_lend = True

    def __init__(self, namespace: Namespace | None = None) -> None:
        self._is_plain = namespace is None
        self.namespace = numpy_namespace if namespace is None else namespace
        self.limit_threads(None)

    def limit_threads(self, count: int | None) -> None:
        """Large element-wise calls on so many threads; None: as many as the BLAS has by default."""
        lanes = lanes_of(count)
        if self._is_plain:
            self.namespace = numpy_namespace if lanes == 1 else on_lanes(lanes)

    def asarray(self, data: Any, dtype: str | None, copy: bool) -> Array:
        try:
            array = np.array(data, dtype=dtype) if copy else np.asarray(data, dtype=dtype)
        except TypeError as error:
            raise dtype_error(self, dtype) from error
        if dtype is None and not (hasattr(data, "dtype") and array.dtype.name in self.dtypes):
            if array.dtype.kind not in "biuf":
                raise dtype_error(self, array.dtype)
            array = array.astype(np.float32)
        if array.dtype.name not in self.dtypes:
            raise dtype_error(self, array.dtype.name)
        return array.reshape(1) if array.ndim == 0 else array

    def to_numpy(self, array: Any) -> Any:
        view = np.asarray(array).view()
        view.flags.writeable = False
        return view

    def storage_values(self, storage: Any, dtype: str) -> Any:
        return storage.copy()

    def lend(self, array: Array) -> tuple[Array, Loan]:
        loan = Loan(array)
        return np.asarray(loan), loan

    def quiet(self) -> AbstractContextManager[object]:
        return np.errstate(all="ignore")
