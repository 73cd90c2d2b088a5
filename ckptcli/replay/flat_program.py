"""A workload under a strategy as a flat program: recorded twice, compared, compiled.

Random draws are inputs: each gets the key that it has on the tape, which moves on by as much from
pass to pass as it did between the two recordings. A program whose calls, or whose data of the host,
differ between these is refused with the first difference.

Invariant: loss, gradients and draws are those of the tape, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import zip_longest

from ckptcli.autodiff.gradients import Gradients
from ckptcli.autodiff.tensor import Tensor, wrap
from ckptcli.backends.base import Array, Backend
from ckptcli.backends.random_keys import RandomKey
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import ReplayError
from ckptcli.graph import leaf_node
from ckptcli.passes.run import OpenedPass, open_pass
from ckptcli.replay.call_recorder import CallBackend, CallRecorder
from ckptcli.replay.compiler import source_of
from ckptcli.replay.instructions import Instruction, Recording
from ckptcli.workloads.base import ForwardResult, Workload


class FlatProgram:
    """The two halves of a pass, without a tape; a second half belongs to the last first half.

    Attributes:
        recording: the calls.
        text: the source.
    """

    def __init__(
        self,
        recording: Recording,
        parameters: dict[str, Tensor],
        draws_a_pass: int,
        backend: Backend,
        shown_place: int | None,
    ) -> None:
        self.recording = recording
        source = source_of(recording, backend)
        self.text = source.text
        self._run_forward, self._run_backward = source.halves()
        self._parameters = parameters
        tensors = list(parameters.values())
        self._device = tensors[0].device.inner()
        self._leaf_ids = [tensor.node.id for tensor in tensors]
        self._gradient_ids = [self._leaf_ids[place] for place, _ in recording.gradients]
        self._shown_place = shown_place
        self._draws_a_pass = draws_a_pass
        self._keys: list[RandomKey] = []
        self._passes = 0
        self._live: list[object] = []

    def forward(self) -> ForwardResult:
        """The first half."""
        drawn = self._passes * self._draws_a_pass
        self._keys = [
            RandomKey(key.seed, key.index + drawn, key.distribution) for key in self.recording.draws
        ]
        self._passes += 1
        self._live = self._run_forward(self._keys)
        root = wrap(self._live[0], leaf_node(-1, 0), self._device)
        return ForwardResult(root, self._parameters)

    def backward(self, result: ForwardResult) -> Gradients:
        """The second half; what the first left is let go of as it goes. Of gradients that are
        consumed the one that is shown is kept.
        """
        return self._backward(lambda place, array: array if place == self._shown_place else None)

    def copied_backward(self, result: ForwardResult) -> Gradients:
        """The second half, whose gradients are copied where they are consumed."""
        return self._backward(lambda place, array: deepcopy(array))

    def _backward(self, kept: Callable[[int, Array], Array | None]) -> Gradients:
        taken: dict[int, Array] = {}

        def take(place: int, array: Array) -> None:
            gradient = kept(place, array)
            if gradient is not None:
                taken[self._leaf_ids[place]] = gradient

        arrays = self._run_backward(self._live, self._keys, take)
        taken.update(zip(self._gradient_ids, arrays))
        return Gradients(taken, self._device)

    def held_before(self) -> list[Array]:
        """Parameters, and what else was there before the pass and is used in it."""
        parameters = [tensor.value for tensor in self._parameters.values()]
        return [*parameters, *self.recording.externals.values()]

    def on(self, backend: Backend) -> FlatProgram:
        """The same program on a backend that counts."""
        return FlatProgram(
            self.recording, self._parameters, self._draws_a_pass, backend, self._shown_place
        )


def flat_program(workload: Workload, strategy: Strategy, backend: Backend) -> FlatProgram:
    """The workload under the strategy, recorded on `backend`.

    Raises:
        ReplayError: its passes differ, or read values, or it has no parameters.
    """
    recorder = CallRecorder(backend.namespace)
    handed: dict[int, int] = {}

    def consumed(result: ForwardResult) -> Gradients:
        result.root.backward(lambda i, g: handed.update({i: recorder.number_of(g.value)}))
        return Gradients({}, result.root.device.inner())

    with backend.quiet():
        opened = open_pass(
            workload,
            strategy,
            backend,
            consumed=consumed,
            watching=lambda b: CallBackend(b, recorder),
        )
        first, parameters = _record(opened, recorder, handed, workload.consumes)
        second, _ = _record(opened, recorder, handed, workload.consumes)
    difference = _first_difference(first, second)
    if difference:
        raise ReplayError(
            f"{workload.title} is not the same in every pass: {difference}",
            "run without --replay",
        )
    if not parameters:
        raise ReplayError(f"{workload.title} has no parameters", "run without --replay")
    names = list(parameters)
    shown = workload.shown_parameter
    place = names.index(shown) if shown in names else None
    return FlatProgram(first, parameters, _draws_a_pass(first, second) or 0, backend, place)


def _record(
    opened: OpenedPass, recorder: CallRecorder, handed: dict[int, int], consumes: bool
) -> tuple[Recording, dict[str, Tensor]]:
    """One pass; what it hands over of gradients is in `handed`, by leaf, if it consumes them."""
    recorder.begin()
    handed.clear()
    forward = recorder.half()
    result = opened.forward()
    root = recorder.number_of(result.root.value)
    backward = recorder.half()
    gradients = opened.backward(result)
    recorder.calls = None
    leaves = list(result.parameters.values())
    if not consumes:
        reached = {tensor.node.id: gradients.wrt(tensor) for tensor in leaves}
        handed.update({i: recorder.number_of(g.value) for i, g in reached.items() if g is not None})
    found = [(p, handed[t.node.id]) for p, t in enumerate(leaves) if t.node.id in handed]
    recording = Recording(
        tuple(forward),
        tuple(backward),
        root,
        tuple(found),
        tuple(recorder.draws),
        dict(recorder.externals),
        recorder.layouts,
        consumes,
    )
    return recording, dict(result.parameters)


def _first_difference(first: Recording, second: Recording) -> str:
    """Where two recordings part; "" if they are the same."""
    for half, calls, again in (
        ("forward", first.forward, second.forward),
        ("backward", first.backward, second.backward),
    ):
        for number, (one, other) in enumerate(zip_longest(calls, again)):
            if one == other:
                continue
            if str(one) == str(other):
                return f"call {number} of {half}, `{one}`, has other data of the host"
            return f"call {number} of {half} is {_words(one)}, then {_words(other)}"
    if [id(a) for a in first.externals.values()] != [id(a) for a in second.externals.values()]:
        return "its parameters or constants are other arrays"
    if (first.root, first.gradients) != (second.root, second.gradients):
        return "its loss or its gradients are other values"
    if _draws_a_pass(first, second) is None:
        return "its random draws do not follow each other"
    return ""


def _draws_a_pass(first: Recording, second: Recording) -> int | None:
    """How far the keys of draws move on from pass to pass; None if not all do by as much."""
    steps = {
        other.index - key.index
        if (key.seed, key.distribution) == (other.seed, other.distribution)
        else None
        for key, other in zip(first.draws, second.draws)
    }
    return 0 if not steps else steps.pop() if len(steps) == 1 else None


def _words(call: Instruction | None) -> str:
    return "nothing" if call is None else f"`{call}`"
