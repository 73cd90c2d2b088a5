"""The op table: one declaration and one function for each op, grouped by what they do.

Every module here is loaded when the engine is. `operation` makes a function of the table a method
of `Tensor` and enters it by its name, which is also its name in graph files.
"""

from __future__ import annotations

import importlib
import pkgutil

from ckptcli.autodiff.ops.table import OPERATIONS as OPERATIONS

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
