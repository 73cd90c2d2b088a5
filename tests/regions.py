"""What tests of regions share: an op that reads its own output, gradients next to `none`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ckptcli import Tensor
from ckptcli.autodiff.apply import unary, with_own_output
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.regions import checkpoint
from ckptcli.events import Event, Recomputed
from ckptcli.graph import Bound
from tests.helpers import backward, gradient, leaf, of_type, watched

Program = Callable[..., Tensor]
"""From leaves to the root of a backward pass."""

X = [[0.3, 0.7, -0.4]]

_OWN = Op(
    "own",
    Bound.COMPUTE,
    1,
    forward=lambda xp, x, _: xp.tanh(x),
    backward=lambda xp, grad, owned, kept, step: _own_gradient(xp, grad, kept.pop()),
)


def _own_gradient(xp: Any, grad: Any, y: Any) -> Any:
    return xp.multiply(grad, xp.add(xp.negative(xp.square(y)), 1.0), None)


def own_output(x: Tensor) -> Tensor:
    """tanh with a backward step that reads the op's own output, as JAX's and PyTorch's do.

    Burn's ops keep operands; of the engine's, `svd` alone is like this one.
    """
    return with_own_output(unary(_OWN, x))


def sin(x: Tensor) -> Tensor:
    """Keeps its input."""
    return x.sin()


def plain(function: Callable[..., Any], **_: object) -> Callable[..., Any]:
    """In place of `checkpoint`: the same program without regions."""
    return function


def recomputed_ops(events: Sequence[Event]) -> list[str]:
    """The ops that ran again, in order."""
    return [event.op for event in of_type(events, Recomputed)]


def run(
    program: Program, *leaves: Any, strategy: str = "none", constants: Sequence[int] = ()
) -> tuple[list[Any], list[str]]:
    """The gradients of `program` on the tracked leaves, and the ops that ran again."""
    dev, recorder = watched(strategy)
    tensors = [leaf(dev, data, i not in constants) for i, data in enumerate(leaves)]
    gradients = backward(program(*tensors))
    tracked = [tensor for i, tensor in enumerate(tensors) if i not in constants]
    return [gradient(gradients, tensor) for tensor in tracked], recomputed_ops(recorder.events)


def runs_again(build: Callable[[Any], Program], *leaves: Any, **options: Any) -> list[str]:
    """The ops that ran again in `build(checkpoint)`; its gradients are those of `build(plain)`."""
    expected, none = run(build(plain), *leaves, **options)
    found, again = run(build(checkpoint), *leaves, **options)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    assert none == []
    return again
