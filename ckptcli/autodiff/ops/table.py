"""The functions of the op table by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ckptcli.autodiff.tensor import method

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""Name -> function whose first parameters are tensors, the others static arguments."""

Function = TypeVar("Function", bound=Callable[..., Any])


def operation(*method_names: str, name: str = "") -> Callable[[Function], Function]:
    """Decorator: enters a function in the table and attaches it to `Tensor`.

    `name` is for an op whose name Python uses itself; `method_names` are further methods.
    """

    def enter(function: Function) -> Function:
        OPERATIONS[name or function.__name__] = function
        return method(*method_names, *([name] if name else []))(function)

    return enter
