"""What is trained, as a user says it: a module, its input, its loss, its optimizer.

Invariant: nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Step:
    """One step of training; what a `MAKE` of `--module FILE.py:MAKE` may return.

    Attributes:
        module: the `torch.nn.Module`.
        args: its arguments; what is no tuple is the only one.
        kwargs: its keywords.
        loss: `loss(output, batch)` gives a tensor of one element; None for the loss that ckpt takes
            of an output.
        optimizer: an instance over parameters of the module, or what makes one of parameters, as
            `torch.optim.SGD` does; None where nothing follows the backward pass.
        batch: what `loss` gets beside the output; None for what the module was given, as one value
            where it is one.
        keep_output: whether the output is held until the backward pass is done, as a script does
            that goes on using it.
        accumulate: micro-batches in a step, each of the whole input as it is given; the loss of
            each is divided by their number, and their gradients add up.
    """

    module: Any
    args: Any = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Any, Any], Any] | None = None
    optimizer: Any = None
    batch: Any = field(default=None, kw_only=True)
    keep_output: bool = field(default=False, kw_only=True)
    accumulate: int = field(default=1, kw_only=True)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """`args` as a tuple."""
        return self.args if isinstance(self.args, tuple) else (self.args,)

    @property
    def given(self) -> Any:
        """What `loss` gets: `batch`, or what the module is given."""
        if self.batch is not None:
            return self.batch
        if not self.kwargs:
            return self.arguments[0] if len(self.arguments) == 1 else self.arguments
        return self.kwargs if not self.arguments else (self.arguments, self.kwargs)
