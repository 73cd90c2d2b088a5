"""The declaration of an op: everything that the engine knows about it.

Source: Burn 0.22.1, `burn-autodiff/src/ops/` (each op's bound, explicit checkpoints, raw state).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from ckptcli.graph import Bound

Positions: TypeAlias = tuple[int, ...]
Keeps: TypeAlias = tuple[Positions, ...]
"""What an op checkpoints: operand positions in order, indexed by the mask of tracked operands."""

NEITHER: Positions = ()
FIRST: Positions = (0,)
SECOND: Positions = (1,)
BOTH: Positions = (0, 1)

KEEPS_NOTHING: Keeps = (NEITHER, NEITHER, NEITHER, NEITHER)
KEEPS_INPUT: Keeps = (NEITHER, FIRST)
KEEPS_OTHER: Keeps = (NEITHER, SECOND, FIRST, BOTH)
"""A factor is needed for the gradient of the other one."""
KEEPS_DIVISION: Keeps = (NEITHER, SECOND, BOTH, BOTH)
"""The divisor is needed for both gradients, the dividend for the divisor's alone."""
KEEPS_BOTH: Keeps = (NEITHER, BOTH, BOTH, BOTH)
"""Both, whichever is tracked."""
KEEPS_LINEAR: Keeps = KEEPS_OTHER * 2
"""A factor for the other's gradient; the third operand, a bias, never."""
KEEPS_ALL: Keeps = (NEITHER, *[(0, 1, 2)] * 7)
"""Up to three operands, whichever is tracked."""
KEEPS_ALL_OF_FIVE: Keeps = (NEITHER, *[(0, 1, 2, 3, 4)] * 31)
"""Up to five operands, whichever is tracked."""

LEFT_TRACKED = 1
RIGHT_TRACKED = 2


Shape: TypeAlias = tuple[int, ...]


def one_flop_an_output(operands: Sequence[Shape], output: Shape) -> int:
    """The cost of an element-wise op."""
    return math.prod(output)


def one_flop_an_input(operands: Sequence[Shape], output: Shape) -> int:
    """The cost of a reduction."""
    return math.prod(operands[0])


def no_flop(operands: Sequence[Shape], output: Shape) -> int:
    """The cost of an op that only moves data or changes the view."""
    return 0


class Flow(Enum):
    """What the arrays that `backward` returns share memory with.

    An array that nobody else holds may be overwritten by the next step.
    """

    FRESH = "new arrays, or the gradient overwritten"
    PASSED = "the gradient itself or views of it"
    SHARED = "never to be overwritten"


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One op.

    Attributes:
        name: Burn's name for it, also the name of its tensor method.
        bound: Burn's mark.
        arity: number of tensor operands; 0 for any number.
        forward: `(namespace, *operands, params) -> value`, also used to compute it again.
        backward: `(namespace, gradient, owned, kept, step) -> gradient(s)`. `kept` is the list of
            retrieved values in the order of `keeps`, to be popped so that each is freed after its
            last use; `owned` says that `gradient` may be overwritten; `step` is the node, with
            `mask`, `params` and `state`. One gradient for arity 1, else one for each operand,
            None where it is untracked.
        keeps: what is checkpointed explicitly.
        state: `(namespace, output, *operands, params) -> state` kept outside the checkpointer; None
            for nothing.
        broadcasts: whether operands are broadcast against each other; their gradients are then
            reduced to their shapes.
        flow: what the gradients share memory with.
        flops: `(operand shapes, output shape) -> floating-point operations` of one forward; a
            function such as exp counts as one.
        is_view: whether the forward moves no bytes.
        step_when_untracked: whether an untracked output counts as an op output for `backward()`.
        evaluates_again: whether `backward` evaluates the op's own function, from its input.
        reads_output: whether `backward` retrieves the op's own output, before what `keeps` names;
            the op's function says so of each tensor, by `with_own_output`.
        free_signs: `params -> columns` of an op whose value is a packed decomposition (U, s, V):
            how many columns are used, in each of which the sign of U and V is free.
        note: what is kept outside the checkpointer, in words; "" for nothing but shapes and
            scalars.
        summary: one line, where no function has the op's name and with it a docstring.
    """

    name: str
    bound: Bound
    arity: int
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    keeps: Keeps = KEEPS_NOTHING
    state: Callable[..., Any] | None = None
    broadcasts: bool = False
    flow: Flow = Flow.FRESH
    flops: Callable[[Sequence[Shape], Shape], int] = one_flop_an_output
    is_view: bool = False
    step_when_untracked: bool = True
    evaluates_again: bool = False
    reads_output: bool = False
    free_signs: Callable[[Any], int] | None = None
    note: str = ""
    summary: str = ""
    all_tracked: int = field(init=False)
    memory_bound: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_tracked", (1 << self.arity) - 1)
        object.__setattr__(self, "memory_bound", self.bound is Bound.MEMORY)

    def kept(self, mask: int, operands: int) -> Positions:
        """The positions that are checkpointed of `operands` operands, tracked by `mask`."""
        if self.keeps is KEEPS_NOTHING:
            return NEITHER
        return tuple(position for position in self.keeps[mask] if position < operands)


def input_shape(xp: Any, out: Any, x: Any, params: Any) -> Shape:
    """The state of an op whose gradient has to know the shape of its only operand."""
    shape: Shape = x.shape
    return shape


def elementwise_op(
    name: str,
    forward: Callable[..., Any],
    derivative: Callable[[Any, Any], Any],
    evaluates_again: bool = False,
) -> Op:
    """A memory-bound op whose gradient is `derivative(namespace, x)` times the incoming one.

    A derivative that contains the function itself computes it again from the input, under every
    strategy, as Burn does: the op does not hold its own output.
    """

    def backward(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
        return xp.multiply(grad, derivative(xp, kept.pop()), grad if owned else None)

    return Op(
        name,
        Bound.MEMORY,
        1,
        forward,
        backward,
        keeps=KEEPS_INPUT,
        evaluates_again=evaluates_again,
    )
