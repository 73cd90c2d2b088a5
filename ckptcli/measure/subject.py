"""What is timed: a forward and a backward pass, or a step of training, as a script makes it.

A step of training is one or several micro-batches, forward and backward, whose gradients add up,
and then the optimizer's step.

Invariant: a step is undone before the next one begins, so that every pass computes the same.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class Subject(Protocol):
    """What is timed. `backward` gets what `forward` returned, `check` what `backward` returned."""

    def forward(self) -> Any: ...

    def backward(self, state: Any) -> Any: ...

    def check(self, result: Any) -> float | None:
        """A figure of the result to show beside the times; not timed."""


@runtime_checkable
class Training(Protocol):
    """A subject that is trained.

    Attributes:
        micro_batches: forward and backward passes in a step, at least 1.
        has_step: whether the optimizer's step follows.
    """

    micro_batches: int
    has_step: bool

    def step(self, result: Any) -> None:
        """The optimizer's step, by what the last `backward` returned."""

    def put_back(self) -> None:
        """Give what the step moved the values from before; not timed."""


def micro_batches_of(subject: Subject) -> int:
    """Forward and backward passes before a step, or before what counts as one pass."""
    return subject.micro_batches if isinstance(subject, Training) else 1


def step_of(subject: Subject) -> Training | None:
    """The subject where an optimizer's step follows; None where none does."""
    return subject if isinstance(subject, Training) and subject.has_step else None


def gradients_of(subject: Subject) -> Any:
    """What `backward` returns after the last micro-batch, and so before the step."""
    result = None
    for _ in range(micro_batches_of(subject)):
        result = subject.backward(subject.forward())
    return result


def whole_pass(subject: Subject) -> Any:
    """Every phase once, the step too, which is undone; what `backward` returned."""
    result = gradients_of(subject)
    training = step_of(subject)
    if training is not None:
        training.step(result)
        training.put_back()
    return result
