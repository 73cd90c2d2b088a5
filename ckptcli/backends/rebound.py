"""NumPy's namespace over another library that has NumPy's names, such as CuPy.

The functions of `numpy_namespace` are taken as they are, with `np` and every NumPy function that
they name standing for the other library's. NumPy's own path gets no indirection by that, and what
is written for it is written for both.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, get_origin

from ckptcli.backends import numpy_namespace

_HOST_FUNCTIONS = ("broadcast_shapes",)
"""Of shapes, not of arrays: NumPy's serves every library."""


def rebound(library: Any, source: ModuleType = numpy_namespace) -> dict[str, Any]:
    """The names of `source` for `library`, whose functions see each other.

    What the library lacks is left out; calling a function that needs it raises NameError.
    """
    names: dict[str, Any] = {"np": library, "__builtins__": __builtins__}
    for name, value in vars(source).items():
        if name.startswith("__") or name == "np":
            continue
        if isinstance(value, FunctionType) and value.__module__ == source.__name__:
            names[name] = FunctionType(
                value.__code__, names, name, value.__defaults__, value.__closure__
            )
            names[name].__kwdefaults__ = value.__kwdefaults__
        elif not _is_numpys(value) or name in _HOST_FUNCTIONS:
            names[name] = value
        elif hasattr(library, value.__name__):
            names[name] = getattr(library, value.__name__)
    return names


def _is_numpys(value: Any) -> bool:
    """Whether it is one of NumPy's functions, which works on its own arrays alone.

    An alias such as `NDArray[Any]` can be called too, and is of NumPy's from Python 3.12 on.
    """
    module = getattr(value, "__module__", None) or type(value).__module__
    is_type = isinstance(value, type) or get_origin(value) is not None
    return callable(value) and not is_type and module.startswith("numpy")
