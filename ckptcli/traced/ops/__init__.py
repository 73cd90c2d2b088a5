"""The ops of the traced engine, grouped by what they do: one declaration and one function each.

Every module here is loaded with the package; `traced_op` makes a function a method of `Tensor`.
"""

from __future__ import annotations

import importlib
import pkgutil

from ckptcli.traced.op import Op
from ckptcli.traced.ops.products import tensordot as tensordot
from ckptcli.traced.ops.svd import svd as svd

DECLARATIONS: dict[str, Op] = {}
"""Name -> op, in the order of the modules."""

for _entry in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_entry.name}")
    DECLARATIONS.update({op.name: op for op in vars(_module).values() if isinstance(op, Op)})
