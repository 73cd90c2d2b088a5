"""A user's function run on a device, and the loss that it returns called there.

The function gets the device and returns a function without arguments, the loss: every call of it
builds a new graph from the function's tensors and returns a tensor. Parameters are the leaves that
require a gradient; they go by the names that the loss has for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor
from ckptcli.checkpoint.user_code import running
from ckptcli.errors import UsageError
from ckptcli.graph import CONSUMED
from ckptcli.workloads.base import ForwardResult
from ckptcli.workloads.program_device import ProgramDevice
from ckptcli.workloads.variable_names import names_of

SHRINK_HINT = "use smaller tensors in the program"


@dataclass(frozen=True, slots=True)
class Program:
    """The function of a file. `text` is `FILE.py:MAKE`; `dtype` None is the program's own.

    `values` are arrays that parameters have instead of the program's own, by their numbers.
    """

    text: str
    make: Callable[[Device], Any]
    dtype: str | None
    seed: int
    values: Mapping[int, Any]

    def load(self, device: Device) -> ProgramNetwork:
        """Run the function on `device`, the random draws begun at the seed.

        Raises:
            ProgramError: the function raised something.
            OutOfMemoryError: its tensors do not fit in memory.
            UsageError: it returned no function.
        """
        own = ProgramDevice(device, self.dtype, self.values)
        own.seed(self.seed)
        with running(self.text, SHRINK_HINT):
            loss = self.make(own)
        check_callable(loss, (), f"what `{self.text}` returns", "the loss takes no arguments")
        return ProgramNetwork(self.text, own, loss)


class ProgramNetwork:
    """A program whose tensors are on a device.

    Attributes:
        made: how many leaves were made before the first call of the loss.
    """

    def __init__(self, text: str, device: ProgramDevice, loss: Callable[[], Any]) -> None:
        self.device = device
        self.made = len(device.leaves)
        self._text = text
        self._loss = loss
        self._names: list[str] | None = None

    def forward(self) -> ForwardResult:
        """Call the loss.

        Raises:
            ProgramError, OutOfMemoryError: it failed.
            UsageError: it returned no tensor of its device.
        """
        device = self.device
        device.forget_leaves_from(self.made)
        with running(self._text, SHRINK_HINT):
            root = self._loss()
        if not isinstance(root, Tensor):
            raise UsageError(
                f"the loss of `{self._text}` returned {_kind(root)}", "return a tensor"
            )
        if root.device is not device:
            raise UsageError(
                f"the loss of `{self._text}` returned a tensor of another device, {root.device}",
                "create all tensors on the device that the function gets",
            )
        if root.node.op is CONSUMED:
            raise UsageError(
                f"the loss of `{self._text}` calls backward() itself",
                "return the loss; its backward pass is what is measured",
            )
        if self._names is None:
            self._names = names_of(device.leaves, self._loss)
        return ForwardResult(root, dict(zip(self._names, device.leaves)))


def check_callable(function: object, arguments: Sequence[object], what: str, hint: str) -> None:
    """Raise `UsageError` unless `function` can be called with these arguments."""
    if not callable(function):
        raise UsageError(f"{what} is {_kind(function)}, not a function", hint)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, without a signature to look at
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise UsageError(f"{what} cannot be called: {error}", hint) from error


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
