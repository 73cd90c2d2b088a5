"""A backend whose last bits vary from run to run, as those of some GPU libraries do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcli.backends.numpy_backend import NumpyBackend


class Wavering(NumpyBackend):
    """A library whose additions go in no certain order: the last bits differ from run to run."""

    is_deterministic = False

    def __init__(self, size: float) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        plain = self.namespace

        class Namespace:
            def __getattr__(self, name: str) -> Any:
                return getattr(plain, name)

            def matmul(self, lhs: Any, rhs: Any) -> Any:
                product = plain.matmul(lhs, rhs)
                noise = rng.normal(0.0, size, product.shape) * np.abs(product).max()
                return (product + noise).astype(product.dtype)

        self.namespace = Namespace()
