"""The connectionist temporal classification loss: minus the log of the sum over all alignments.

An alignment says one class a time step; what it spells is its classes without repetitions and then
without blanks. The sum runs over states, the target with blanks around its labels, forwards
(alpha) and, for the gradient, backwards (beta) in time, both in log space.

Compute bound, keeps its input. Burn has the op as one node on backends with a backward of their
own; on the others it is composed. The gradient is that of the composed form, the derivative by each
log probability alone: backwards through a log softmax both give the same.

Source: Burn 0.22.1, `burn-autodiff/src/ops/module.rs`, `burn-backend/src/backend/ops/modules`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import KEEPS_INPUT, Op, one_flop_an_input
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.positions import along_dim, checked_indices, put_at, take_at, whole_numbers
from ckptcli.autodiff.tensor import Tensor
from ckptcli.autodiff.windows import pad
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound

IMPOSSIBLE = -math.inf
"""The log of a probability of 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What is to be spelt, as integer arrays of the backend.

    Attributes:
        states: the class of each state, [batch, states]: blanks around the labels.
        input_lengths: how many time steps count, [batch, 1].
        label_counts: how many labels count, [batch, 1].
        blank: the class of no label.
    """

    states: Any
    input_lengths: Any
    label_counts: Any
    blank: int


def _log_sum(xp: Any, parts: Sequence[Any]) -> Any:
    """The log of the sum of exponentials, element by element; of impossible ones, impossible."""
    largest = parts[0]
    for part in parts[1:]:
        largest = xp.maximum(largest, part)
    base = xp.where(xp.equal(largest, IMPOSSIBLE), 0.0, largest)
    total = xp.exp(xp.subtract(parts[0], base))
    for part in parts[1:]:
        total = xp.add(total, xp.exp(xp.subtract(part, base)))
    return xp.add(largest, xp.log(xp.maximum(total, 1.0)))


def _log_sum_of_states(xp: Any, x: Any) -> Any:
    """The same over the states, which stay with size 1."""
    largest = xp.max_dim(x, 1)
    base = xp.where(xp.equal(largest, IMPOSSIBLE), 0.0, largest)
    total = xp.sum_dim(xp.exp(xp.subtract(x, base)), 1)
    return xp.add(largest, xp.log(xp.maximum(total, 1.0)))


class Lattice:
    """The states at every time step; arrays are [batch, states]."""

    def __init__(self, xp: Any, log_probs: Any, targets: Targets) -> None:
        self.xp = xp
        self.targets = targets
        steps, batch, _ = log_probs.shape
        count = targets.states.shape[1]
        shape = (steps, batch, count)
        states = xp.reshape(targets.states, (1, batch, count))
        self.positions = along_dim(xp, log_probs.shape, states, 2, shape)
        emissions = take_at(xp, log_probs, self.positions, shape)
        self.emissions = [
            xp.reshape(xp.take_slices(emissions, (slice(t, t + 1),)), (batch, count))
            for t in range(steps)
        ]
        number = xp.reshape(xp.arange(count), (1, count))
        last = xp.multiply(targets.label_counts, 2)
        is_last = xp.logical_or(xp.equal(number, last), xp.equal(number, xp.subtract(last, 1)))
        two_before = self._moved(targets.states, 2, targets.blank)
        self.start = self._allowed(xp.less(number, 2), log_probs)
        self.end = self._allowed(is_last, log_probs)
        self.skip = self._allowed(xp.not_equal(targets.states, two_before), log_probs)

    def _allowed(self, mask: Any, like: Any) -> Any:
        """0 where a state may be, or may be reached by leaving one out; else impossible."""
        return self.xp.where(mask, self.xp.zeros((1, 1), like), IMPOSSIBLE)

    def _moved(self, x: Any, states: int, fill: float = IMPOSSIBLE) -> Any:
        """Each state's number given to the one `states` further on, or back if negative."""
        count = x.shape[1]
        before, after = max(0, states), max(0, -states)
        padded = pad(self.xp, x, (before,), (after,), fill)
        return self.xp.take_slices(padded, (slice(None), slice(after, after + count)))

    def forwards(self) -> list[Any]:
        """Alpha: the log of the sum over beginnings that end in a state, its emission included.

        Behind a sample's last time step, what it was there.
        """
        xp = self.xp
        alphas = [xp.add(self.emissions[0], self.start)]
        for t in range(1, len(self.emissions)):
            alpha = alphas[-1]
            skipped = xp.add(self._moved(alpha, 2), self.skip)
            reached = _log_sum(xp, (alpha, self._moved(alpha, 1), skipped))
            alphas.append(xp.where(self.counts(t), xp.add(reached, self.emissions[t]), alpha))
        return alphas

    def beta_before(self, t: int, beta: Any) -> Any:
        """Beta at t: the log of the sum over what can follow a state; `beta` is that at t + 1."""
        xp = self.xp
        after = xp.add(self.emissions[t + 1], beta)
        skipped = self._moved(xp.add(after, self.skip), -2)
        reached = _log_sum(xp, (after, self._moved(after, -1), skipped))
        return xp.where(self.counts(t + 1), reached, self.end)

    def counts(self, t: int) -> Any:
        """Whether a time step is one of the sample's: [batch, 1]."""
        return self.xp.greater(self.targets.input_lengths, t)

    def likelihood(self, last_alpha: Any) -> Any:
        """The log of the sum over all alignments, [batch, 1]."""
        return _log_sum_of_states(self.xp, self.xp.add(last_alpha, self.end))


def _ctc_loss(xp: Any, log_probs: Any, targets: Targets) -> Any:
    lattice = Lattice(xp, log_probs, targets)
    likelihood = lattice.likelihood(lattice.forwards()[-1])
    return xp.reshape(xp.negative(likelihood), (log_probs.shape[1],))


def _ctc_gradient(xp: Any, grad: Any, owned: bool, kept: list[Any], step: Any) -> Any:
    """Minus how likely each state is at each time; none for a sample without an alignment."""
    log_probs = kept.pop()
    lattice = Lattice(xp, log_probs, step.params)
    alphas = lattice.forwards()
    likelihood = lattice.likelihood(alphas[-1])
    is_impossible = xp.equal(likelihood, IMPOSSIBLE)
    base = xp.where(is_impossible, 0.0, likelihood)
    factor = xp.negative(xp.reshape(grad, likelihood.shape))
    factor = xp.where(is_impossible, 0.0, factor)
    beta, parts = lattice.end, []
    steps = len(alphas)
    for t in reversed(range(steps)):
        if t < steps - 1:
            beta = lattice.beta_before(t, beta)
        share = xp.exp(xp.subtract(xp.add(alphas.pop(), beta), base))
        share = xp.where(lattice.counts(t), xp.multiply(share, factor), 0.0)
        parts.append(xp.reshape(share, (1, *share.shape)))
    whole = xp.zeros(log_probs.shape, log_probs)
    return put_at(xp, whole, lattice.positions, xp.concat(parts[::-1], 0), "add")


CTC_LOSS = Op(
    "ctc_loss",
    Bound.COMPUTE,
    1,
    forward=_ctc_loss,
    backward=_ctc_gradient,
    keeps=KEEPS_INPUT,
    flops=one_flop_an_input,
    note="the integer targets and lengths",
)


def _lengths(x: Tensor, lengths: Any, batch: int, least: int, most: int, what: str) -> Any:
    namespace = x.device.namespace
    array = whole_numbers(x, lengths, "ctc_loss")
    if array.shape != (batch,):
        raise ShapeError(f"`ctc_loss` needs {batch} {what}, got shape {list(array.shape)}")
    if not namespace.indices_within(namespace.subtract(array, least), most - least + 1):
        raise ShapeError(f"`ctc_loss` has {what} outside of {least} to {most}")
    return namespace.reshape(array, (batch, 1))


@operation()
def ctc_loss(
    log_probs: Tensor, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0
) -> Tensor:
    """The loss of each sample: log_probs is [time, batch, classes], targets is [batch, labels]."""
    if len(log_probs.shape) != 3 or not log_probs.shape[0]:
        shape = list(log_probs.shape)
        raise ShapeError(f"`ctc_loss` needs log_probs of rank 3 with a time step, got {shape}")
    steps, batch, classes = log_probs.shape
    xp = log_probs.device.namespace
    labels = whole_numbers(log_probs, targets, "ctc_loss")
    if len(labels.shape) != 2 or labels.shape[0] != batch:
        raise ShapeError(f"`ctc_loss` needs targets for {batch} sample(s), got {labels.shape}")
    if not 0 <= blank < classes:
        raise ShapeError(f"`ctc_loss` has its blank {blank} outside of 0 to {classes - 1}")
    width = labels.shape[1]
    input_counts = _lengths(log_probs, input_lengths, batch, 1, steps, "input_lengths")
    label_counts = _lengths(log_probs, target_lengths, batch, 0, width, "target_lengths")
    is_label = xp.less(xp.reshape(xp.arange(width), (1, width)), label_counts)
    blanks = xp.add(xp.zeros_indices((batch, width + 1)), blank)
    padding = xp.take_slices(blanks, (slice(None), slice(0, width)))
    labels = xp.where(is_label, labels, padding)
    labels = checked_indices(log_probs, labels, classes, "ctc_loss")
    said_blank = xp.equal(xp.where(is_label, labels, xp.subtract(padding, blank + 1)), blank)
    if xp.true_positions(xp.reshape(said_blank, (batch * width,))).shape[0]:
        raise ShapeError(f"`ctc_loss` has the blank {blank} among its targets")
    pairs = [xp.reshape(each, (batch, width, 1)) for each in (padding, labels)]
    inner = xp.reshape(xp.concat(pairs, 2), (batch, 2 * width))
    last = xp.take_slices(blanks, (slice(None), slice(width, width + 1)))
    states = xp.concat([inner, last], 1)
    return unary(CTC_LOSS, log_probs, Targets(states, input_counts, label_counts, blank))
