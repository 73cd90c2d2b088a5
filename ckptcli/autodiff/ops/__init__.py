"""The op table: one declaration and one function for each op, in the file that is named
after them.

Every module here is loaded when the engine is. `operation` makes a function of the table a method
of `Tensor` and enters it by its name, which is also its name in graph files.
"""

from __future__ import annotations

import importlib
import pkgutil

from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.table import OPERATIONS as OPERATIONS

DECLARATIONS: dict[str, Op] = {}
"""Name -> op, in the order of the modules."""

for _entry in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_entry.name}")
    DECLARATIONS.update({op.name: op for op in vars(_module).values() if isinstance(op, Op)})
