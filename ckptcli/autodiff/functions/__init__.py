"""Functions composed of ops, in Burn's id order: each op of a function is a node of its own.

Every module here is loaded when the engine is; its functions are entered in the table of ops by
name, as methods of `Tensor` and for graph files.

Source: Burn 0.22.1, `burn-tensor/src/tensor/{activation,module,loss}`, `burn-nn`.
"""

from __future__ import annotations

import importlib
import pkgutil

from ckptcli.autodiff.functions.activation import silu as silu

for _entry in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_entry.name}")
